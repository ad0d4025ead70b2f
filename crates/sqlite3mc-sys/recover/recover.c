/*
** The recovery extension as one unit. Its two files were taken out of SQLite's shell, which declares
** these types for them.
*/
#include "sqlite3mc_amalgamation.h"

typedef unsigned char u8;
typedef unsigned int u32;
typedef sqlite3_int64 i64;

#include "sqlite3recover.h"
#include "dbdata.c"
#include "sqlite3recover.c"
