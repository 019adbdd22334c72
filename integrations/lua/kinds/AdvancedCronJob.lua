-- Healthy: runs are started as scheduled, whatever becomes of them. Progressing: one runs. Suspended: paused.
if at(obj, "spec", "paused") == true then return suspended("Schedule is paused") end
local active, last = #entries(at(obj, "status", "active")), text(at(obj, "status", "lastScheduleTime"))
if not last then return healthy("Not yet scheduled") end
local runs = "Last scheduled at " .. last .. ", " .. active .. " active"
if active > 0 then return progressing(runs) end
return healthy(runs)
