/*
 * sqlite.c - inserts in one transaction, look-ups by index and a scan, in a database in memory.
 * Shows: set-up that fails, undoing an iteration in a pause, items, a result that is checked.
 */
#include <mew.h>

#include <stdlib.h>

#include <sqlite3.h>

static const char *const row_labels[] = { "100", "1000", NULL };
static const int row_counts[] = { 100, 1000 };

enum { LOOKUPS = 32 }; /* per iteration: one alone is too short to be read well */

static const char *const schema =
	"CREATE TABLE item (id INTEGER PRIMARY KEY, tag TEXT NOT NULL, price INTEGER NOT NULL);"
	"CREATE INDEX by_price ON item (price);";
static const char *const insert_sql = "INSERT INTO item (id, tag, price) VALUES (?1, 'a short text', ?2)";

/* Prices are a permutation of 0 .. n-1 for every n below the prime, so that a look-up finds one row at most. */
static int price_of(int id)
{
	return (int)(((long long)id * 7919) % 10007);
}

static int run_sql(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int insert_rows(sqlite3 *db, sqlite3_stmt *insert, int rows)
{
	int status = run_sql(db, "BEGIN");

	for (int id = 0; status == SQLITE_OK && id < rows; id++) {
		sqlite3_bind_int(insert, 1, id);
		sqlite3_bind_int(insert, 2, price_of(id));
		sqlite3_step(insert);
		status = sqlite3_reset(insert); /* repeats the error of the step */
	}
	return status == SQLITE_OK ? run_sql(db, "COMMIT") : status;
}

/* A database with the table and `rows` rows, and a statement; closed by close_all(), also after a failure. */
static int open_all(sqlite3 **db, sqlite3_stmt **statement, const char *sql, int rows)
{
	sqlite3_stmt *insert = NULL;
	int status = sqlite3_open(":memory:", db);

	*statement = NULL;
	if (status == SQLITE_OK)
		status = run_sql(*db, schema);
	if (status == SQLITE_OK)
		status = sqlite3_prepare_v2(*db, insert_sql, -1, &insert, NULL);
	if (status == SQLITE_OK)
		status = insert_rows(*db, insert, rows);
	sqlite3_finalize(insert);
	if (status == SQLITE_OK)
		status = sqlite3_prepare_v2(*db, sql, -1, statement, NULL);
	return status;
}

static void close_all(sqlite3 *db, sqlite3_stmt *statement)
{
	sqlite3_finalize(statement);
	sqlite3_close(db);
}

MEW_BENCHMARK_NAMED(insert, "sqlite/insert", .cases = row_labels, .tags = "sqlite write")
{
	int rows = row_counts[mew_case_index(st)];
	sqlite3_stmt *insert;
	sqlite3 *db;
	int status = open_all(&db, &insert, insert_sql, 0);

	if (status != SQLITE_OK) {
		mew_fail(st, sqlite3_errmsg(db));
		close_all(db, insert);
		return;
	}
	MEW_LOOP(st) {
		if (status == SQLITE_OK)
			status = insert_rows(db, insert, rows);
		MEW_PAUSED(st) {
			if (status == SQLITE_OK)
				status = run_sql(db, "DELETE FROM item");
		}
	}
	if (status != SQLITE_OK)
		mew_fail(st, sqlite3_errmsg(db));
	mew_set_items(st, rows);
	close_all(db, insert);
}

MEW_BENCHMARK_NAMED(lookup, "sqlite/lookup", .cases = row_labels, .tags = "sqlite read")
{
	int rows = row_counts[mew_case_index(st)];
	int next = 0, missed = 0;
	sqlite3_stmt *select;
	sqlite3 *db;

	if (open_all(&db, &select, "SELECT id, tag FROM item WHERE price = ?1", rows) != SQLITE_OK) {
		mew_fail(st, sqlite3_errmsg(db));
		close_all(db, select);
		return;
	}
	MEW_LOOP(st) {
		for (int i = 0; i < LOOKUPS; i++) {
			sqlite3_bind_int(select, 1, price_of(next));
			missed += sqlite3_step(select) != SQLITE_ROW || sqlite3_column_int(select, 0) != next;
			sqlite3_reset(select);
			next = (next + 37) % rows;
		}
	}
	if (missed != 0)
		mew_fail(st, "a look-up did not find its row");
	mew_set_items(st, LOOKUPS);
	close_all(db, select);
}

MEW_BENCHMARK_NAMED(scan, "sqlite/scan", .cases = row_labels, .tags = "sqlite read")
{
	int rows = row_counts[mew_case_index(st)];
	sqlite3_stmt *select;
	sqlite3 *db;
	int seen = rows;

	if (open_all(&db, &select, "SELECT count(*), sum(price), max(length(tag)) FROM item", rows) != SQLITE_OK) {
		mew_fail(st, sqlite3_errmsg(db));
		close_all(db, select);
		return;
	}
	MEW_LOOP(st) {
		if (sqlite3_step(select) == SQLITE_ROW)
			seen = sqlite3_column_int(select, 0);
		mew_keep(sqlite3_column_int64(select, 1));
		sqlite3_reset(select);
	}
	if (seen != rows)
		mew_fail(st, "the scan did not see every row");
	mew_set_items(st, rows);
	close_all(db, select);
}

MEW_MAIN()
