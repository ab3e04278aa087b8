"""What prose says in numbers: values out of records, claims over them, and the search for typed ones."""
