"""What verification runs in children: the only part of the fix queue that imports torch."""
