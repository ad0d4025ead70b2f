// Call this with a connection that your program opened. Save the output, and run
// `warren doctor app.db --settings FILE`.
pub fn print_settings(db: &rusqlite::Connection) -> rusqlite::Result<()> {
    let names = "journal_mode synchronous busy_timeout foreign_keys cache_size mmap_size temp_store
        temp_store_directory secure_delete auto_vacuum encoding page_size wal_autocheckpoint
        journal_size_limit locking_mode analysis_limit recursive_triggers trusted_schema
        cell_size_check query_only compile_options cipher cipher_version";
    let query = "SELECT 'sqlite_version=' || sqlite_version() UNION ALL
        SELECT 'file=' || file FROM pragma_database_list WHERE seq = 0";
    let print = |name: &str, row: &rusqlite::Row<'_>| {
        let value = row.get_ref(0)?;
        let text = value.as_str().map(str::to_owned);
        let text = text.or_else(|_| value.as_i64().map(|number| number.to_string()));
        println!("{name}{}", text.unwrap_or_default());
        Ok(())
    };
    for name in names.split_whitespace() {
        db.pragma_query(None, name, |row| print(&format!("{name}="), row))?;
    }
    db.prepare(query)?.query_map([], |row| print("", row))?.collect::<Result<(), _>>()?;
    let env = ["SQLITE_TMPDIR", "TMPDIR"].map(std::env::var).map(Result::unwrap_or_default);
    println!("framework=rusqlite\nSQLITE_TMPDIR={}\nTMPDIR={}", env[0], env[1]);
    Ok(())
}
