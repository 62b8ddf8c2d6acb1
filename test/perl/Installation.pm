# Copyright (c) 2026, ttl_index contributors

# A copy of the server's installation that looks for extensions in a folder of its own: for
# scripts of versions that are nowhere else.  And such a version, which comes before the
# first one.

package Installation;

use strict;
use warnings;
use File::Basename ();
use File::Copy     ();
use File::Path     ();
use PostgreSQL::Test::Utils;

sub config
{
	my ($option) = @_;
	my ($path, $stderr) = run_command([ 'pg_config', $option ]);

	return $path;
}

# A server finds its files relative to itself, and looks where a link to it leads:
# so the programs that look for some are copies, and the rest are links.
sub made_in
{
	my ($class, $work) = @_;
	my ($bindir, $sharedir, $libdir) =
	  (config('--bindir'), config('--sharedir'), config('--pkglibdir'));

	File::Path::mkpath([ $work . $bindir, "$work$sharedir/extension", $work . $libdir ]);
	foreach my $program ('postgres', 'initdb', 'pg_ctl', 'pg_config')
	{
		File::Copy::copy("$bindir/$program", "$work$bindir/$program") or die "copy: $!";
		chmod 0755, "$work$bindir/$program";
	}
	# this fails for what is there already, the copies and the folder of extensions
	symlink $_, $work . $_
	  foreach glob "$bindir/* $sharedir/* $sharedir/extension/* $libdir/*";
	return bless {
		prefix => $work . File::Basename::dirname($bindir),
		extensions => "$work$sharedir/extension",
		library => "$work$libdir/ttl_index.so"
	}, $class;
}

sub prefix { return $_[0]->{prefix}; }

sub extensions { return $_[0]->{extensions}; }

# Takes the library of the extension away.
sub drop_library
{
	my ($self) = @_;

	rename $self->{library}, "$self->{library}.away" or die "rename: $!";
	return;
}

sub give_library_back
{
	my ($self) = @_;

	rename "$self->{library}.away", $self->{library} or die "rename: $!";
	return;
}

sub add_script
{
	my ($self, $versions, $text) = @_;

	append_to_file("$self->{extensions}/ttl_index--$versions.sql", $text);
	return;
}

# Takes the script of a version away.
sub drop_script
{
	my ($self, $version) = @_;

	unlink "$self->{extensions}/ttl_index--$version.sql" or die "unlink: $!";
	return;
}

# What a file in the folder of extensions says.
sub slurp
{
	my ($self, $file) = @_;

	return slurp_file("$self->{extensions}/$file");
}

# The default version is another one from now on.
sub default_version
{
	my ($self, $version) = @_;
	my $control = $self->slurp('ttl_index.control');

	$control =~ s/^default_version = .*$/default_version = '$version'/m;
	unlink "$self->{extensions}/ttl_index.control" or die "unlink: $!";
	append_to_file("$self->{extensions}/ttl_index.control", $control);
	return;
}

# From the script of a version, that of one which lacks a function, the last column of a
# table, and the views over that; and the script that leads from there to the first.
sub early_version
{
	my ($script) = @_;
	my ($function) = $script =~ /^(CREATE FUNCTION oldest_due.*?;\n\nCOMMENT .*?;\n)/ms
	  or die 'there is no function oldest_due';
	my ($column) = $script =~ /^CREATE TABLE counters \(.*?,\n\t([^\n]*)\n\);/ms
	  or die 'there is no table of counters';
	my ($views) = $script =~ /^(CREATE VIEW stats.*?)^CREATE FUNCTION stats_reset/ms
	  or die 'there are no views of statistics';
	my ($cluster) = $script =~ /^(CREATE VIEW cluster_stats.*?^\$\$;\n\n)/ms
	  or die 'there are no views of a cluster';
	my $update = "SET LOCAL search_path = ttl_index, pg_temp;\n"
	  . "ALTER TABLE counters ADD COLUMN $column;\n" . $views . $cluster . $function
	  . "GRANT EXECUTE ON FUNCTION oldest_due(regclass) TO PUBLIC;\n"
	  . "GRANT SELECT ON stats, index_stats, cluster_stats, cluster_index_stats, cluster_history TO PUBLIC;\n";

	$script =~ s/\Q$function\E//;
	$script =~ s/\Q$views\E//;
	$script =~ s/\Q$cluster\E//;
	$script =~ s/,\n\t\Q$column\E\n\);/\n);/;
	# nor the rows that have it
	$script =~ s/^INSERT INTO counters .*?;\n//ms;
	$script =~ s/^\toldest_due\(regclass\),\n//m;
	$script =~ s/^GRANT SELECT ON indexes, stats, index_stats, cluster_stats, cluster_index_stats/GRANT SELECT ON indexes/m;
	$script =~ s/^GRANT SELECT ON history, cluster_history/GRANT SELECT ON history/m;
	return ($script, $update);
}

1;
