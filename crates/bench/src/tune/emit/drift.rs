//! For drift, with the `sqlite3` package under it: for Dart and Flutter.

use super::Recipe;

pub(super) fn write(recipe: &Recipe) -> String {
    let pragmas =
        recipe.lines(|name, value| format!("      database.execute('PRAGMA {name} = {value}');"));
    format!(
        "import 'dart:io';

import 'package:drift/drift.dart';
import 'package:drift/native.dart';

QueryExecutor openConnection() {{
  return NativeDatabase.createInBackground(
    File('app.db'),
    setup: (database) {{
{pragmas}    }},
  );
}}
"
    )
}
