//! Writes settings for drift, on top of the `sqlite3` package: for Dart and Flutter.

use super::check;
use super::recipe::PragmaRecipe;

pub(super) fn write(recipe: &PragmaRecipe) -> String {
    let pragmas = recipe.lines("      ", line);
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

pub(super) fn line(name: &str, value: &str) -> String {
    format!("database.execute('PRAGMA {name} = {value}');")
}

pub(super) fn check() -> String {
    let (pragmas, query) = (check::pragmas("      "), check::query("      "));
    format!(
        "Future<void> printSettings(GeneratedDatabase db) async {{
  const pragmas = '''
      {pragmas}''';
  const query = \"\"\"{query}\"\"\";
  print('framework=drift');
  for (final name in pragmas.trim().split(RegExp(r'\\s+'))) {{
    for (final row in await db.customSelect('PRAGMA $name').get()) {{
      print('$name=${{row.data.values.first}}');
    }}
  }}
  for (final row in await db.customSelect(query).get()) print(row.data.values.first);
  for (final name in ['SQLITE_TMPDIR', 'TMPDIR']) {{
    print('$name=${{Platform.environment[name] ?? \"\"}}');
  }}
}}
"
    )
}
