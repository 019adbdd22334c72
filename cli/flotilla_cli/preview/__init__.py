"""`flotilla plan -f FILE`: what an apply would do now, from the live objects, without writing anything."""
