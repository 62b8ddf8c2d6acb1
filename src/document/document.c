/*-------------------------------------------------------------------------
 *
 * document.c
 *	  Dates and times to live inside jsonb documents: the keys of TTL indexes.
 *
 * A date is {"$date": ...} as MongoDB's tools write it, or a string with a full RFC 3339
 * date-time.  If the key says so, a number of a unit is one as well, or a string without an offset
 * in a time zone.  All else is not a date, and never an error: a document must not stop an INSERT.
 *
 * As in MongoDB, a path continues in each object of an array, a numeric component is a name or
 * a position, and the earliest date found decides.  At the end of the path the elements of an
 * array count, but not those of an array in an array, such as one that was found by its
 * position.
 *
 * Documents and paths can be deep, so an array on the way is put on a stack instead of
 * recursing.  The same array can be reached in two ways, by name and by position, whose paths
 * differ in length.  To avoid exponential time, it is walked once, for all path components
 * that reach it.  They are complete when the element of the surrounding array is done.
 *
 * A time to live is as in Azure Cosmos DB: a whole number of seconds from 1 to 2147483647, or
 * -1 for never.  Anything else is NULL, as if it were missing.  create_index() makes two indexes
 * of such documents (ddl/create.c): expire_at() must be NULL for -1, and for all documents that
 * are in the main index.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/int.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "document/rfc3339.h"
#include "keytype.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_document_date);
PG_FUNCTION_INFO_V1(ttl_document_date_in);
PG_FUNCTION_INFO_V1(ttl_earliest);
PG_FUNCTION_INFO_V1(ttl_document_ttl);
PG_FUNCTION_INFO_V1(ttl_column_ttl);
PG_FUNCTION_INFO_V1(ttl_expire_at);

#define TTL_NEVER (-1)

#define EPOCH_MS \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * 1000)

/* An array on the way, whose elements are being walked. */
typedef struct ArrayWalk
{
	struct ArrayWalk *below;	/* in the stack */
	JsonbContainer *array;
	JsonbIterator *elements;
	int64		position;		/* of the next element */
	int			first;			/* component to look for in the elements */
	int			last;
	bool		wanted[FLEXIBLE_ARRAY_MEMBER];	/* which of those between */
} ArrayWalk;

typedef struct PathWalk
{
	const Datum *path;
	int			path_length;
	int64	   *positions;		/* that the components mean; -1: none */
	ArrayWalk  *top;			/* of the stack of arrays */
	ArrayWalk  *around;			/* the array whose element is being walked */
	TtlUnit		unit;			/* of numbers, or none */
	pg_tz	   *zone;			/* of strings without an offset, or NULL */
	bool		found;
	TimestampTz earliest;
} PathWalk;

/*
 * The value of an integer in decimal digits, or the nearest one that an int64
 * can hold.  False for anything else; a fraction of zeros is none.
 */
static bool
read_integer(const char *s, int length, bool may_have_fraction, int64 *value)
{
	bool		negative = length > 0 && s[0] == '-';
	int			i = negative ? 1 : 0;
	int			first = i;
	int64		n = 0;			/* below zero, where there is one more */

	for (; i < length && s[i] >= '0' && s[i] <= '9'; i++)
	{
		if (pg_mul_s64_overflow(n, 10, &n) ||
			pg_sub_s64_overflow(n, s[i] - '0', &n))
			n = PG_INT64_MIN;
	}
	if (i == first)
		return false;
	if (may_have_fraction && i < length && s[i] == '.')
	{
		i++;
		while (i < length && s[i] == '0')
			i++;
	}
	if (i < length)
		return false;
	*value = negative ? n : n == PG_INT64_MIN ? PG_INT64_MAX : -n;
	return true;
}

/*
 * Is this a jsonb number without a fraction?  By value, not by text: 20.0 and
 * 2e1 are 20.  What is too large for an int64 becomes the nearest one.
 */
static bool
jsonb_integer(const JsonbValue *value, int64 *integer)
{
	char	   *text;
	bool		ok;

	if (value->type != jbvNumeric)
		return false;
	/* the one way that neither rounds nor raises, on all majors */
	text = DatumGetCString(DirectFunctionCall1(numeric_out,
											   NumericGetDatum(value->val.numeric)));
	ok = read_integer(text, strlen(text), true, integer);
	pfree(text);
	return ok;
}

static bool
string_date(const JsonbValue *value, pg_tz *zone, TimestampTz *date)
{
	const char *string = value->val.string.val;
	size_t		length = value->val.string.len;
	bool		has_offset;
	int64_t		micros;

	/* programs that write no offset often write a space instead of the T */
	if (zone != NULL && length > 10 && string[10] == ' ')
	{
		char	   *copy = pnstrdup(string, length);

		copy[10] = 'T';
		string = copy;
	}
	if (!rfc3339_parse(string, length, &has_offset, &micros) ||
		(!has_offset && zone == NULL))
		return false;
	*date = has_offset ? micros : ttl_keytype_in_zone(zone, micros);
	return true;
}

/* The value of the only member of an object, where it has this name. */
static bool
only_member(const JsonbValue *value, const char *name, JsonbValue *member)
{
	if (value->type != jbvBinary ||
		!JsonContainerIsObject(value->val.binary.data) ||
		JsonContainerSize(value->val.binary.data) != 1)
		return false;
	return getKeyJsonValueFromContainer(value->val.binary.data, name,
										strlen(name), member) != NULL;
}

/* An integer as Extended JSON writes it: {"$numberLong": "20"}. */
static bool
wrapped_integer(const JsonbValue *value, const char *name, int64 *integer)
{
	JsonbValue	digits;

	return only_member(value, name, &digits) && digits.type == jbvString &&
		read_integer(digits.val.string.val, digits.val.string.len, false,
					 integer);
}

/*
 * {"$numberDouble": "20.0"}, if the double is whole and fits into int64.  strtod() also reads
 * what is not decimal, and skips what comes before the digits.
 */
static bool
wrapped_double(const JsonbValue *value, int64 *integer)
{
	JsonbValue	digits;
	char	   *text;
	char	   *first;
	char	   *end;
	double		number;
	bool		ok;

	if (!only_member(value, "$numberDouble", &digits) || digits.type != jbvString)
		return false;
	text = pnstrdup(digits.val.string.val, digits.val.string.len);
	first = text[0] == '-' ? text + 1 : text;
	number = strtod(text, &end);
	ok = *first >= '0' && *first <= '9' && end == text + digits.val.string.len &&
		strspn(first, "0123456789.eE+-") == strlen(first) &&
		number == rint(number) && FLOAT8_FITS_IN_INT64(number);
	if (ok)
		*integer = (int64) number;
	pfree(text);
	return ok;
}

/* An integer, as a number of JSON or as Extended JSON has it with its type. */
static bool
typed_integer(const JsonbValue *value, int64 *integer)
{
	return jsonb_integer(value, integer) ||
		wrapped_integer(value, "$numberInt", integer) ||
		wrapped_integer(value, "$numberLong", integer) ||
		wrapped_double(value, integer);
}

/* Is a value a number of this unit that is a date? */
static bool
number_date(const JsonbValue *value, TtlUnit unit, TimestampTz *date)
{
	int64		number;
	uint64		rest;

	if (value->type == jbvNumeric)
		number = ttl_keytype_round_up(value->val.numeric, &rest);
	else if (!typed_integer(value, &number))
		return false;
	if (number <= 0 || number == PG_INT64_MAX)
		return false;
	*date = ttl_keytype_instant(unit, number);
	return true;
}

/* Is a value a date by itself, or by the unit or zone of the key? */
static bool
value_date(const PathWalk *walk, const JsonbValue *value, TimestampTz *date)
{
	JsonbValue	payload;
	int64		ms;

	if (value->type == jbvString)
		return string_date(value, walk->zone, date);
	if (walk->unit != TTL_UNIT_NONE && number_date(value, walk->unit, date))
		return true;
	if (!only_member(value, "$date", &payload))
		return false;
	if (payload.type == jbvString)
		return string_date(&payload, NULL, date);
	if (!wrapped_integer(&payload, "$numberLong", &ms) && !jsonb_integer(&payload, &ms))
		return false;

	/* milliseconds since 1970; out of range, the nearest infinity */
	if (ms < MIN_TIMESTAMP / 1000 + EPOCH_MS)
		*date = DT_NOBEGIN;
	else if (ms >= END_TIMESTAMP / 1000 + EPOCH_MS)
		*date = DT_NOEND;
	else
		*date = (ms - EPOCH_MS) * 1000;
	return true;
}

static void
consider(PathWalk *walk, const JsonbValue *value)
{
	TimestampTz date;

	if (!value_date(walk, value, &date))
		return;
	if (!walk->found || date < walk->earliest)
		walk->earliest = date;
	walk->found = true;
}

static bool
is_array(const JsonbValue *value)
{
	return value->type == jbvBinary &&
		JsonContainerIsArray(value->val.binary.data);
}

static JsonbIterator *
begin_array(JsonbContainer *array)
{
	JsonbIterator *elements = JsonbIteratorInit(array);
	JsonbValue	ignored;

	(void) JsonbIteratorNext(&elements, &ignored, true);
	return elements;
}

/* False at the end, where the iterator is freed. */
static bool
next_element(JsonbIterator **elements, JsonbValue *element)
{
	/* an array can be large, and so can their number */
	CHECK_FOR_INTERRUPTS();
	return JsonbIteratorNext(elements, element, true) == WJB_ELEM;
}

/* The array position that a component means: "0", "12", but not "012". */
static int64
component_position(Datum component)
{
	const char *s = VARDATA_ANY(DatumGetPointer(component));
	int			length = VARSIZE_ANY_EXHDR(DatumGetPointer(component));
	int64		position;

	if (length == 0 || length > 9 || s[0] == '-' ||
		(length > 1 && s[0] == '0') ||
		!read_integer(s, length, false, &position))
		return -1;
	return position;
}

/*
 * Puts an array on the stack, unless it is there, to look for this component of the path in its
 * elements.
 */
static void
push_array(PathWalk *walk, JsonbContainer *array, int component)
{
	ArrayWalk  *frame = walk->top;

	if (walk->positions == NULL)
	{
		walk->positions = palloc(walk->path_length * sizeof(int64));
		for (int i = 0; i < walk->path_length; i++)
			walk->positions[i] = component_position(walk->path[i]);
	}
	while (frame != walk->around && frame->array != array)
		frame = frame->below;
	if (frame == walk->around)
	{
		frame = palloc(offsetof(ArrayWalk, wanted) + walk->path_length * sizeof(bool));
		memset(frame->wanted, false, walk->path_length * sizeof(bool));
		frame->below = walk->top;
		frame->array = array;
		frame->elements = begin_array(array);
		frame->position = 0;
		frame->first = walk->path_length;
		frame->last = 0;
		walk->top = frame;
	}
	frame->wanted[component] = true;
	frame->first = Min(frame->first, component);
	frame->last = Max(frame->last, component);
}

/* Follows the path through objects to its end, or to an array, which is pushed. */
static void
follow(PathWalk *walk, const JsonbValue *start, int component,
	   bool by_position)
{
	JsonbValue	value = *start;
	JsonbIterator *elements;
	JsonbValue	element;

	for (; component < walk->path_length; component++)
	{
		Pointer		name = DatumGetPointer(walk->path[component]);

		if (value.type != jbvBinary)
			return;
		if (is_array(&value))
		{
			push_array(walk, value.val.binary.data, component);
			return;
		}
		if (getKeyJsonValueFromContainer(value.val.binary.data,
										 VARDATA_ANY(name),
										 VARSIZE_ANY_EXHDR(name),
										 &value) == NULL)
			return;
		by_position = false;
	}

	/* at the end of the path, the elements of an array count */
	if (!is_array(&value))
		consider(walk, &value);
	else if (!by_position)
	{
		elements = begin_array(value.val.binary.data);
		while (next_element(&elements, &element))
			consider(walk, &element);
	}
}

/* Walks the element that is next in the array on top of the stack. */
static void
walk_element(PathWalk *walk)
{
	ArrayWalk  *array = walk->top;
	JsonbValue	element;
	bool		is_object;

	if (!next_element(&array->elements, &element))
	{
		walk->top = array->below;
		pfree(array);
		return;
	}
	walk->around = array;
	is_object = element.type == jbvBinary && !is_array(&element);
	for (int i = array->first; i <= array->last + 1; i++)
	{
		bool		inside = i <= array->last && array->wanted[i] && is_object;
		bool		at_position = i > array->first && array->wanted[i - 1] &&
		walk->positions[i - 1] == array->position;

		if (inside || at_position)
			follow(walk, &element, i, at_position);
	}
	array->position++;
}

/* Returns the earliest date at the path, of the document in the first argument.  Only an interrupt is an error. */
static Datum
earliest_date(FunctionCallInfo fcinfo, ArrayType *path, TtlUnit unit, pg_tz *zone)
{
	Jsonb	   *document = PG_GETARG_JSONB_P(0);
	PathWalk	walk = {.unit = unit,.zone = zone};
	JsonbValue	root;
	Datum	   *components;
	bool	   *nulls;

	deconstruct_array(path, TEXTOID, -1, false, TYPALIGN_INT,
					  &components, &nulls, &walk.path_length);
	walk.path = components;
	/* no member of an object is named NULL */
	for (int i = 0; i < walk.path_length; i++)
	{
		if (nulls[i])
			PG_RETURN_NULL();
	}

	if (!JsonbExtractScalar(&document->root, &root))
	{
		root.type = jbvBinary;
		root.val.binary.data = &document->root;
		root.val.binary.len = VARSIZE_ANY_EXHDR(document);
	}
	follow(&walk, &root, 0, false);
	while (walk.top != NULL)
		walk_element(&walk);

	if (!walk.found)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(walk.earliest);
}

/* document_date(document jsonb, VARIADIC path text[]) returns timestamptz */
Datum
ttl_document_date(PG_FUNCTION_ARGS)
{
	return earliest_date(fcinfo, PG_GETARG_ARRAYTYPE_P(1), TTL_UNIT_NONE, NULL);
}

/*
 * document_date_in(document jsonb, unit_or_time_zone text, VARIADIC path text[])
 * returns timestamptz
 */
Datum
ttl_document_date_in(PG_FUNCTION_ARGS)
{
	char	   *format = text_to_cstring(PG_GETARG_TEXT_PP(1));
	TtlUnit		unit = ttl_keytype_find_unit(format);
	pg_tz	   *zone = unit == TTL_UNIT_NONE ? pg_tzset(format) : NULL;

	/* in documents there are no UUIDs */
	if (unit == TTL_UNIT_UUIDV7)
		unit = TTL_UNIT_NONE;
	return earliest_date(fcinfo, PG_GETARG_ARRAYTYPE_P(2), unit, zone);
}

/* earliest(dates timestamptz[]) returns timestamptz */
Datum
ttl_earliest(PG_FUNCTION_ARGS)
{
	ArrayIterator dates = array_create_iterator(PG_GETARG_ARRAYTYPE_P(0), 0,
												NULL);
	TimestampTz earliest = 0;
	bool		found = false;
	Datum		date;
	bool		isnull;

	while (array_iterate(dates, &date, &isnull))
	{
		if (isnull || (found && DatumGetTimestampTz(date) >= earliest))
			continue;
		earliest = DatumGetTimestampTz(date);
		found = true;
	}
	array_free_iterator(dates);
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(earliest);
}

static bool
is_valid_ttl(int64 ttl)
{
	return ttl == TTL_NEVER || (ttl >= 1 && ttl <= PG_INT32_MAX);
}

/*
 * document_ttl(document jsonb, field text) returns integer
 *
 * It is not named like column_ttl(), because an untyped literal could not choose.
 */
Datum
ttl_document_ttl(PG_FUNCTION_ARGS)
{
	Jsonb	   *document = PG_GETARG_JSONB_P(0);
	text	   *field = PG_GETARG_TEXT_PP(1);
	JsonbValue	value;
	int64		ttl;

	if (!JB_ROOT_IS_OBJECT(document) ||
		getKeyJsonValueFromContainer(&document->root, VARDATA_ANY(field),
									 VARSIZE_ANY_EXHDR(field),
									 &value) == NULL ||
		!typed_integer(&value, &ttl) || !is_valid_ttl(ttl))
		PG_RETURN_NULL();
	PG_RETURN_INT32((int32) ttl);
}

/* column_ttl(ttl bigint) returns integer */
Datum
ttl_column_ttl(PG_FUNCTION_ARGS)
{
	int64		ttl = PG_GETARG_INT64(0);

	if (!is_valid_ttl(ttl))
		PG_RETURN_NULL();
	PG_RETURN_INT32((int32) ttl);
}

/* expire_at(since timestamptz, ttl integer) returns timestamptz: infinity if out of range */
Datum
ttl_expire_at(PG_FUNCTION_ARGS)
{
	TimestampTz since = PG_GETARG_TIMESTAMPTZ(0);
	int32		ttl = PG_GETARG_INT32(1);
	TimestampTz at;

	if (!is_valid_ttl(ttl) || ttl == TTL_NEVER)
		PG_RETURN_NULL();
	if (TIMESTAMP_NOT_FINITE(since))
		PG_RETURN_TIMESTAMPTZ(since);
	if (pg_add_s64_overflow(since, (int64) ttl * USECS_PER_SEC, &at) ||
		!IS_VALID_TIMESTAMP(at))
		PG_RETURN_TIMESTAMPTZ(DT_NOEND);
	PG_RETURN_TIMESTAMPTZ(at);
}
