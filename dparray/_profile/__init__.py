"""Where work ran, when, and why: profiles, timers and placement reports."""
