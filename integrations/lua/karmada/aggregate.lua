function AggregateStatus(desiredObj, statusItems)
  local generation = number(at(desiredObj, "metadata", "generation"))
  local status = {}
  if GENERATIONS then status.observedGeneration = number(at(desiredObj, "status", "observedGeneration")) end
  for _, field in ipairs(COUNTS) do status[field] = 0 end
  for _, field in ipairs(TEXTS) do status[field] = "" end
  local found, observed, ended = {}, true, true
  for _, item in ipairs(entries(statusItems)) do
    local one = entries(at(item, "status"))
    for _, field in ipairs(COUNTS) do status[field] = status[field] + number(one[field]) end
    for _, field in ipairs(TEXTS) do status[field] = text(one[field], status[field]) end
    for _, field in ipairs(LISTS) do
      for _, entry in ipairs(entries(one[field])) do
        status[field] = entries(status[field])
        table.insert(status[field], entry)
      end
    end
    for _, field in ipairs(FIRST) do
      local time = text(one[field])
      if time and (not status[field] or time < status[field]) then status[field] = time end
    end
    for _, field in ipairs(LAST) do
      local time = text(one[field])
      if time and (not status[field] or time > status[field]) then status[field] = time end
    end
    if text(one.phase) then found[one.phase] = true end
    ended = ended and text(one.completionTime) ~= nil
    -- The member observed its own generation, which was made from one of this object.
    local given = one.resourceTemplateGeneration or generation
    observed = observed and given == generation
      and number(one.observedGeneration) > 0 and number(one.observedGeneration) >= number(one.generation)
  end
  if not ended then status.completionTime = nil end
  for _, phase in ipairs(PHASES) do
    if found[phase] or not status.phase then status.phase = found[phase] and phase or "" end
    if found[phase] then break end
  end
  if GENERATIONS and observed then status.observedGeneration = generation end
  desiredObj.status = status
  return desiredObj
end
