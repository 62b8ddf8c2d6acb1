/*-------------------------------------------------------------------------
 *
 * document_date.c
 *	  Fuzz target: the walker of paths, with sanitizers and assertions, and
 *	  against the definition of a path.
 *
 * The walker is compiled as it is; the few functions of the server that it calls
 * are replaced by ones that work on the tree which is read from the input: a
 * line with the path, its components separated by dots, and the document in
 * JSON without escapes and exponents.  What is found must be what a plain
 * recursion finds.  The document itself is also read as an integer, which may
 * have its type with it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  test/fuzz/document_date.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <signal.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

/* the C library's, since nothing of the server is linked */
#undef snprintf

#include "../../src/document/document.c"

/* Two meanings of a number at each component take the definition its time. */
#define MAX_COMPONENTS 12
#define MAX_DEPTH 200

/* A value; where it is an array or object, also a JsonbContainer. */
typedef struct JsonNode
{
	uint32		header;			/* as in a JsonbContainer; a scalar has none */
	enum jbvType type;
	char	   *text;			/* of a string or number */
	int			length;
	struct JsonNode **children;
	struct JsonNode **keys;
	int			count;
} JsonNode;

typedef struct DocPath
{
	Datum	   *components;
	bool	   *nulls;
	int			count;
} DocPath;

typedef struct Input
{
	const char *at;
	const char *end;
	int			depth;
} Input;

typedef struct Elements
{
	const JsonNode *array;
	int			next;
} Elements;

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Memory, freed after each input
 */

typedef struct Chunk
{
	struct Chunk *previous;
	struct Chunk *next;
} Chunk;

static Chunk chunks = {&chunks, &chunks};

void *
palloc(Size size)
{
	Chunk	   *chunk = malloc(sizeof(Chunk) + size);

	chunk->previous = &chunks;
	chunk->next = chunks.next;
	chunk->next->previous = chunk;
	chunks.next = chunk;
	return memset(chunk + 1, 0x7f, size);
}

void
pfree(void *pointer)
{
	Chunk	   *chunk = (Chunk *) pointer - 1;

	chunk->previous->next = chunk->next;
	chunk->next->previous = chunk->previous;
	free(chunk);
}

char *
pnstrdup(const char *s, Size length)
{
	char	   *copy = palloc(length + 1);

	copy[length] = '\0';
	return memcpy(copy, s, length);
}

static void
free_all(void)
{
	while (chunks.next != &chunks)
		pfree(chunks.next + 1);
}

/*
 * The server
 */

volatile sig_atomic_t InterruptPending = false;

void
ProcessInterrupts(void)
{
}

struct varlena *
pg_detoast_datum(struct varlena *datum)
{
	return datum;
}

struct varlena *
pg_detoast_datum_packed(struct varlena *datum)
{
	return datum;
}

/*
 * What document_date_in() alone calls, which is not tried here
 */

TtlUnit
ttl_keytype_find_unit(const char *name)
{
	abort();
}

TimestampTz
ttl_keytype_instant(TtlUnit unit, int64 key)
{
	abort();
}

int64
ttl_keytype_round_up(Numeric number, uint64 *rest)
{
	abort();
}

TimestampTz
ttl_keytype_in_zone(pg_tz *zone, Timestamp local)
{
	abort();
}

pg_tz *
pg_tzset(const char *name)
{
	abort();
}

char *
text_to_cstring(const text *value)
{
	abort();
}

/* of a function that is compiled and not called */
ArrayIterator
array_create_iterator(ArrayType *array, int slice_ndim, ArrayMetaState *meta)
{
	abort();
}

bool
array_iterate(ArrayIterator iterator, Datum *value, bool *isnull)
{
	abort();
}

void
array_free_iterator(ArrayIterator iterator)
{
	abort();
}

/* defined in this way, because their arguments differ between the majors */
extern void stop(void) __asm__("ExceptionalCondition");
extern void take_apart(DocPath *path, Oid type, int length, bool byval,
					   char align, Datum **components, bool **nulls,
					   int *count) __asm__("deconstruct_array");

void
stop(void)
{
	abort();
}

void
take_apart(DocPath *path, Oid type, int length, bool byval, char align,
		   Datum **components, bool **nulls, int *count)
{
	*components = path->components;
	*nulls = path->nulls;
	*count = path->count;
}

Datum
numeric_out(PG_FUNCTION_ARGS)
{
	abort();
}

/* numeric_out is the only function that is called by this. */
Datum
DirectFunctionCall1Coll(PGFunction function, Oid collation, Datum number)
{
	JsonNode   *node = (JsonNode *) DatumGetPointer(number);
	char	   *text = palloc(node->length + 1);

	Assert(function == numeric_out && node->type == jbvNumeric);
	memcpy(text, node->text, node->length);
	text[node->length] = '\0';
	return CStringGetDatum(text);
}

static void
fill(JsonbValue *value, const JsonNode *node)
{
	memset(value, 0x7f, sizeof(*value));
	value->type = node->type;
	if (node->type == jbvString)
	{
		value->val.string.val = node->text;
		value->val.string.len = node->length;
	}
	else if (node->type == jbvNumeric)
		value->val.numeric = (Numeric) node;
	else if (node->header != 0)
	{
		value->type = jbvBinary;
		value->val.binary.data = (JsonbContainer *) node;
		value->val.binary.len = sizeof(JsonNode);
	}
}

static JsonNode *
find_member(const JsonNode *object, const char *key, int length)
{
	for (int i = 0; i < object->count; i++)
	{
		if (object->keys[i]->length == length &&
			memcmp(object->keys[i]->text, key, length) == 0)
			return object->children[i];
	}
	return NULL;
}

JsonbValue *
getKeyJsonValueFromContainer(JsonbContainer *container, const char *key,
							 int length, JsonbValue *result)
{
	JsonNode   *member;

	Assert(JsonContainerIsObject(container));
	member = find_member((JsonNode *) container, key, length);
	if (member == NULL)
		return NULL;
	fill(result, member);
	return result;
}

/* A scalar at the root is an array of one element. */
bool
JsonbExtractScalar(JsonbContainer *container, JsonbValue *result)
{
	memset(result, 0x7f, sizeof(*result));
	if (!JsonContainerIsScalar(container))
		return false;
	fill(result, ((JsonNode *) container)->children[0]);
	return true;
}

JsonbIterator *
JsonbIteratorInit(JsonbContainer *container)
{
	Elements   *elements = palloc(sizeof(Elements));

	Assert(JsonContainerIsArray(container) && !JsonContainerIsScalar(container));
	elements->array = (JsonNode *) container;
	elements->next = -1;
	return (JsonbIterator *) elements;
}

JsonbIteratorToken
JsonbIteratorNext(JsonbIterator **iterator, JsonbValue *value, bool skip_nested)
{
	Elements   *elements = (Elements *) *iterator;

	Assert(skip_nested && elements != NULL);
	if (elements->next++ < 0)
		return WJB_BEGIN_ARRAY;
	if (elements->next > elements->array->count)
	{
		pfree(elements);
		*iterator = NULL;
		return WJB_END_ARRAY;
	}
	fill(value, elements->array->children[elements->next - 1]);
	return WJB_ELEM;
}

/*
 * Reading the input; NULL where it is not JSON
 */

static JsonNode *
new_node(enum jbvType type)
{
	JsonNode   *node = palloc(sizeof(JsonNode));

	memset(node, 0, sizeof(JsonNode));
	node->type = type;
	return node;
}

static bool
accept(Input *input, char c)
{
	if (input->at == input->end || *input->at != c)
		return false;
	input->at++;
	return true;
}

static bool
accept_word(Input *input, const char *word)
{
	size_t		length = strlen(word);

	if (input->end - input->at < length ||
		memcmp(input->at, word, length) != 0)
		return false;
	input->at += length;
	return true;
}

/* An exact copy, so that reading beyond it is seen. */
static JsonNode *
text_node(enum jbvType type, const char *text, int length)
{
	JsonNode   *node = new_node(type);

	node->text = palloc(length);
	node->length = length;
	memcpy(node->text, text, length);
	return node;
}

static JsonNode *
read_string(Input *input)
{
	const char *begin = input->at;

	while (input->at < input->end && *input->at != '"')
		input->at++;
	if (!accept(input, '"'))
		return NULL;
	return text_node(jbvString, begin, input->at - 1 - begin);
}

static JsonNode *
read_number(Input *input)
{
	const char *begin = input->at;
	const char *digits;

	accept(input, '-');
	for (digits = input->at; input->at < input->end && isdigit((unsigned char) *input->at);)
		input->at++;
	if (input->at == digits)
		return NULL;
	if (accept(input, '.'))
	{
		for (digits = input->at; input->at < input->end && isdigit((unsigned char) *input->at);)
			input->at++;
		if (input->at == digits)
			return NULL;
	}
	return text_node(jbvNumeric, begin, input->at - begin);
}

static void
add_child(JsonNode *node, JsonNode *key, JsonNode *child)
{
	JsonNode  **children = palloc((node->count + 1) * sizeof(JsonNode *));
	JsonNode  **keys = palloc((node->count + 1) * sizeof(JsonNode *));

	/* jsonb keeps the last of equal keys */
	for (int i = 0; key != NULL && i < node->count; i++)
	{
		if (node->keys[i]->length == key->length &&
			memcmp(node->keys[i]->text, key->text, key->length) == 0)
		{
			node->children[i] = child;
			return;
		}
	}
	if (node->count > 0)
	{
		memcpy(children, node->children, node->count * sizeof(JsonNode *));
		memcpy(keys, node->keys, node->count * sizeof(JsonNode *));
	}
	children[node->count] = child;
	keys[node->count] = key;
	node->children = children;
	node->keys = keys;
	node->count++;
	node->header++;
}

static JsonNode *read_value(Input *input);

static JsonNode *
read_container(Input *input, bool is_object)
{
	JsonNode   *node = new_node(jbvBinary);
	char		closing = is_object ? '}' : ']';

	node->header = is_object ? JB_FOBJECT : JB_FARRAY;
	if (accept(input, closing))
		return node;
	do
	{
		JsonNode   *key = NULL;
		JsonNode   *child;

		if (is_object && (!accept(input, '"') ||
						  (key = read_string(input)) == NULL ||
						  !accept(input, ':')))
			return NULL;
		child = read_value(input);
		if (child == NULL)
			return NULL;
		add_child(node, key, child);
	} while (accept(input, ','));
	return accept(input, closing) ? node : NULL;
}

static JsonNode *
read_value(Input *input)
{
	JsonNode   *node;

	if (++input->depth > MAX_DEPTH)
		return NULL;
	if (accept(input, '{'))
		node = read_container(input, true);
	else if (accept(input, '['))
		node = read_container(input, false);
	else if (accept(input, '"'))
		node = read_string(input);
	else if (accept_word(input, "true") || accept_word(input, "false"))
		node = new_node(jbvBool);
	else if (accept_word(input, "null"))
		node = new_node(jbvNull);
	else
		node = read_number(input);
	input->depth--;
	return node;
}

static Datum
new_text(const char *s, int length)
{
	struct varlena *text = palloc(VARHDRSZ + length);

	SET_VARSIZE(text, VARHDRSZ + length);
	memcpy(VARDATA(text), s, length);
	return PointerGetDatum(text);
}

/* The first line, without a "\n"; an empty one is a path without components. */
static void
read_path(DocPath *path, const char *line, size_t length)
{
	const char *end = line + length;

	path->components = palloc((MAX_COMPONENTS + 1) * sizeof(Datum));
	path->nulls = palloc((MAX_COMPONENTS + 1) * sizeof(bool));
	memset(path->nulls, false, (MAX_COMPONENTS + 1) * sizeof(bool));
	path->count = 0;
	while (line <= end && length > 0 && path->count <= MAX_COMPONENTS)
	{
		const char *dot = memchr(line, '.', end - line);

		if (dot == NULL)
			dot = end;
		path->components[path->count++] = new_text(line, dot - line);
		line = dot + 1;
	}
}

/*
 * The definition
 */

typedef struct Found
{
	bool		found;
	TimestampTz date;
} Found;

/* An integer in decimal digits, as far as it matters. */
static bool
plain_integer(const JsonNode *node, bool fraction, __int128 *value)
{
	int			i = node->length > 0 && node->text[0] == '-' ? 1 : 0;
	int			first = i;

	for (*value = 0; i < node->length && isdigit((unsigned char) node->text[i]); i++)
	{
		if (*value < (__int128) 1 << 100)
			*value = *value * 10 + (node->text[i] - '0');
	}
	if (i == first)
		return false;
	if (first == 1)
		*value = -*value;
	if (fraction && i < node->length && node->text[i] == '.')
	{
		for (i++; i < node->length; i++)
		{
			if (node->text[i] != '0')
				return false;
		}
	}
	return i == node->length;
}

/* The string beside the only key of an object, or NULL. */
static const JsonNode *
only_string(const JsonNode *node, const char *key)
{
	const JsonNode *member;

	if (!(node->header & JB_FOBJECT) || node->count != 1)
		return NULL;
	member = find_member(node, key, strlen(key));
	return member != NULL && member->type == jbvString ? member : NULL;
}

static bool
plain_double(const JsonNode *digits, double *value)
{
	static regex_t pattern;
	static bool compiled = false;
	char	   *text = palloc(digits->length + 1);

	if (!compiled && regcomp(&pattern, "^-?[0-9]+(\\.[0-9]*)?([eE][-+]?[0-9]+)?$", REG_EXTENDED | REG_NOSUB) != 0)
		abort();
	compiled = true;
	memcpy(text, digits->text, digits->length);
	text[digits->length] = '\0';
	if (strlen(text) != digits->length || regexec(&pattern, text, 0, NULL, 0) != 0)
		return false;
	*value = strtod(text, NULL);
	return true;
}

static bool
plain_typed_integer(const JsonNode *node, int64 *integer)
{
	const JsonNode *digits = only_string(node, "$numberInt");
	__int128	value;
	double		number;

	if (digits == NULL)
		digits = only_string(node, "$numberLong");
	if (digits != NULL ? !plain_integer(digits, false, &value) :
		node->type != jbvNumeric || !plain_integer(node, true, &value))
	{
		digits = only_string(node, "$numberDouble");
		if (digits == NULL || !plain_double(digits, &number) ||
			floor(number) != number || fabs(number) > 0x1p63 || number == 0x1p63)
			return false;
		value = (__int128) number;
	}
	*integer = value > PG_INT64_MAX ? PG_INT64_MAX : value < PG_INT64_MIN ? PG_INT64_MIN : (int64) value;
	return true;
}

static bool
plain_date(const JsonNode *node, bool wrapped, TimestampTz *date)
{
	const JsonNode *payload;
	const JsonNode *digits;
	__int128	ms;
	int64_t		micros;
	bool		has_offset;
	bool		is_date;

	if (node->type == jbvString)
	{
		is_date = rfc3339_parse(node->text, node->length, &has_offset, &micros) && has_offset;
		*date = micros;
		return is_date;
	}
	if (!wrapped)
	{
		payload = (node->header & JB_FOBJECT) && node->count == 1 ?
			find_member(node, "$date", 5) : NULL;
		return payload != NULL && plain_date(payload, true, date);
	}
	digits = (node->header & JB_FOBJECT) && node->count == 1 ?
		find_member(node, "$numberLong", 11) : NULL;
	is_date = digits != NULL ?
		digits->type == jbvString && plain_integer(digits, false, &ms) :
		node->type == jbvNumeric && plain_integer(node, true, &ms);
	if (!is_date)
		return false;
	ms = (ms - (__int128) 946684800000) * 1000;
	*date = ms < MIN_TIMESTAMP ? DT_NOBEGIN : ms >= END_TIMESTAMP ? DT_NOEND :
		(TimestampTz) ms;
	return true;
}

static void
plain_consider(const JsonNode *node, Found *found)
{
	TimestampTz date;

	if (!plain_date(node, false, &date))
		return;
	if (!found->found || date < found->date)
		found->date = date;
	found->found = true;
}

static void
plain_walk(const JsonNode *node, const DocPath *path, int k, bool by_position,
		   Found *found)
{
	bool		is_array = (node->header & JB_FARRAY) != 0;
	char	   *name;
	int			length;

	if (k == path->count)
	{
		if (!is_array)
			plain_consider(node, found);
		for (int i = 0; is_array && !by_position && i < node->count; i++)
			plain_consider(node->children[i], found);
		return;
	}
	name = VARDATA_ANY(DatumGetPointer(path->components[k]));
	length = VARSIZE_ANY_EXHDR(DatumGetPointer(path->components[k]));
	if (node->header & JB_FOBJECT)
	{
		JsonNode   *member = find_member(node, name, length);

		if (member != NULL)
			plain_walk(member, path, k + 1, false, found);
	}
	for (int i = 0; is_array && i < node->count; i++)
	{
		char		position[16];

		if (node->children[i]->header & JB_FOBJECT)
			plain_walk(node->children[i], path, k, false, found);
		snprintf(position, sizeof(position), "%d", i);
		if (strlen(position) == length && memcmp(position, name, length) == 0)
			plain_walk(node->children[i], path, k + 1, true, found);
	}
}

static void
check_integer(const JsonNode *node)
{
	JsonbValue	value;
	int64		integer;
	int64		expected;
	bool		found;

	fill(&value, node);
	found = typed_integer(&value, &integer);
	if (found != plain_typed_integer(node, &expected) ||
		(found && integer != expected))
		abort();
}

/* A Jsonb whose root is a copy of the node. */
static Jsonb *
new_document(JsonNode *node)
{
	char	   *memory = palloc(8 + sizeof(JsonNode));
	Jsonb	   *document = (Jsonb *) (memory + 8 - offsetof(Jsonb, root));
	JsonNode   *root = (JsonNode *) (memory + 8);

	if (node->header == 0)
	{
		memset(root, 0, sizeof(JsonNode));
		add_child(root, NULL, node);
		root->header |= JB_FARRAY | JB_FSCALAR;
	}
	else
		*root = *node;
	SET_VARSIZE(document, VARHDRSZ);
	return document;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *newline = size == 0 ? NULL : memchr(data, '\n', size);
	Input		input = {newline == NULL ? NULL : newline + 1, (const char *) data + size, 0};
	DocPath		path;
	JsonNode   *node;
	Found		expected = {false, 0};
	TimestampTz date;
	bool		found;

	if (newline == NULL)
		return 0;
	node = read_value(&input);
	read_path(&path, (const char *) data, newline - (const char *) data);
	if (node == NULL || input.at != input.end || path.count > MAX_COMPONENTS)
	{
		free_all();
		return 0;
	}
	check_integer(node);
	found = find_date(new_document(node), (ArrayType *) &path, TTL_UNIT_NONE, NULL, &date);
	plain_walk(node, &path, 0, false, &expected);
	if (found != expected.found || (found && date != expected.date))
		abort();
	free_all();
	return 0;
}
