"""The first KruisePodReady condition of pods that declare the gate and have no controller that sets it."""
