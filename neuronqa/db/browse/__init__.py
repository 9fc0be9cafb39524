"""What the pages read: small indexed queries over a finished sweep's rows and tallies, and over what runs."""
