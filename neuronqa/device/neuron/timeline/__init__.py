"""What a run would look like on the hardware: which engine does what when. Times are modelled, never measured."""
