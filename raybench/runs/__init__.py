"""From job to output folder: check, resume or refuse, run, publish; and finished runs, read back for a page."""
