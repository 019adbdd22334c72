"""Sets the first KruisePodReady condition of pods that have the gate but no controller that sets it."""
