strategy.paused = false
return obj
