-- ARGV: status, queue and type or nothing for each, limit, the id to go on after or nothing. Answers id and record of
-- each, newest first. Only reads: merges the lists of every status, queue and type that match.
local status, queue, type_, limit, after = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local ids = {}

local function newest(view, n)
  return redis.call('ZREVRANGEBYLEX', view, after == '' and '+' or '(' .. after, '-', 'LIMIT', 0, n)
end

local function take(id)
  ids[#ids + 1] = id
end

-- Leases are in the order they end; there are no more of them than jobs that run.
local function take_processing(leases)
  for _, id in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    if after == '' or id < after then
      take(id)
    end
  end
end

local function take_queued(view, leases)
  local listed = newest(view, limit + redis.call('ZCARD', leases))
  for first = 1, #listed, MOST do
    local ends = redis.call('ZMSCORE', leases, unpack(listed, first, math.min(first + MOST - 1, #listed)))
    for at, ending in ipairs(ends) do
      if not ending then
        take(listed[first + at - 1])
      end
    end
  end
end

local seen = {}
for _, known in ipairs(redis.call('HKEYS', COUNTS)) do
  local of_status, of_queue, of_type = string.match(known, '^(.*)' .. SEP .. '(.*)' .. SEP .. '(.*)$')
  if (status == '' or status == of_status) and (queue == '' or queue == of_queue) and (type_ == '' or type_ == of_type) then
    local lists = named(of_status, of_queue, of_type)
    if status == 'p' then
      take_processing(lists.leases)
    elseif status == 'q' then
      take_queued(lists.view, lists.leases)
    elseif not seen[lists.view] then
      seen[lists.view] = true
      for _, id in ipairs(newest(lists.view, limit)) do
        take(id)
      end
    end
  end
end
table.sort(ids, function(one, other) return one > other end)
local told = {}
for at = 1, math.min(limit, #ids) do
  local record = redis.call('GET', RECORD .. ids[at])
  if record then
    told[#told + 1] = ids[at]
    told[#told + 1] = record
  end
end
return told
