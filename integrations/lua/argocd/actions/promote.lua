strategy.partition = 0
return obj
