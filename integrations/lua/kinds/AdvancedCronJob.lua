-- Healthy: runs start as scheduled, whether or not they succeed. Progressing: a run is active. Suspended: paused.
if at(obj, "spec", "paused") == true then return suspended("Schedule is paused") end
local active, last = #entries(at(obj, "status", "active")), text(at(obj, "status", "lastScheduleTime"))
if not last then return healthy("Not yet scheduled") end
local runs = "Last scheduled at " .. last .. ", " .. active .. " active"
if active > 0 then return progressing(runs) end
return healthy(runs)
