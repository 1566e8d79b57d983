-- ARGV: how many groups, the groups, then for each firing name, tick, next tick, whether only if none is live, how many
-- ticks it accounts for, whether there is a draft, and the draft. Answers what became of each.
local fired_before = answered()
if fired_before then
  return fired_before
end

local TICKS_KEPT = 50
local groups, at = {}, 2
for n = 1, tonumber(ARGV[1]) do
  groups[n] = group_at(at)
  at = at + GROUP
end

local function make(name, tick, unless_live, draft)
  if not draft then
    return 'missed', ''
  end
  if unless_live and redis.call('EXISTS', P .. 'live:' .. name) == 1 then
    return 'skipped', ''
  end
  local known = redis.call('HGET', P .. 'ticked:' .. name, tick)
  if known then
    return 'skipped', known
  end
  know_queues({draft.group})
  local made = insert_one(draft, rooms({draft.group}))
  if made[1] == 'created' then
    return 'fired', draft.id
  end
  return 'skipped', ''
end

local told = {}
for place = at, #ARGV, 6 + DRAFT do
  local name, tick = ARGV[place], ARGV[place + 1]
  local found = redis.call('HGET', P .. 'schedules', name)
  local known = found and split(found)
  if tonumber(tick) > now then
    told[#told + 1] = 'early'
  elseif not known or known[NEXT] ~= tick or known[PAUSED] ~= '' then
    told[#told + 1] = 'stale'
  else
    known[NEXT], known[LAST], known[UPDATED] = ARGV[place + 2], tick, NOW
    write_schedule(name, known)
    local draft = ARGV[place + 5] == '1' and draft_at(place + 6, groups)
    local fired, id = make(name, tick, ARGV[place + 3] == '1', draft)
    local ticks = P .. 'ticks:' .. name
    redis.call('ZREMRANGEBYSCORE', ticks, tick, tick)
    redis.call('ZADD', ticks, tick, tick .. ',' .. fired .. ',' .. id .. ',' .. ARGV[place + 4])
    redis.call('ZREMRANGEBYRANK', ticks, 0, -TICKS_KEPT - 1)
    told[#told + 1] = fired
  end
end
wake()
return remember(told)
