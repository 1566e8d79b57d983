-- ARGV, for each group: the group, what stands in its records before and after the payload, whether payloads lie apart, how
-- many drafts, then id and payload of each. Answers 1 when all are jobs now, 0 when nothing was written because a draft
-- may meet something: an id that is there, a queue that has a largest depth.
local groups, drafts, at = {}, {}, 1
while at <= #ARGV do
  local group = group_at(at)
  groups[#groups + 1] = group
  group.before, group.after = group.before .. stamped(group, ARGV[at + GROUP]), ARGV[at + GROUP + 1] .. group.after
  group.apart, group.first = ARGV[at + GROUP + 2] == '1', at + GROUP + 4
  group.last = group.first + 2 * tonumber(ARGV[at + GROUP + 3]) - 1
  at = group.last + 1
end
if next(rooms(groups)) ~= nil then
  return 0
end

local records, n = {}, 0
for _, group in ipairs(groups) do
  for place = group.first, group.last, 2 do
    n = n + 1
    records[n] = P .. 'j:' .. ARGV[place]
  end
end
for first = 1, n, MOST do
  if redis.call('EXISTS', unpack(records, first, math.min(first + MOST - 1, n))) > 0 then
    return 0
  end
end

local written, size, record, listed = {}, 0, 0, {}
for _, group in ipairs(groups) do
  local ids, waiting, m = {}, {}, 0
  for place = group.first, group.last, 2 do
    local id, payload = ARGV[place], ARGV[place + 1]
    record = record + 1
    written[size + 1], written[size + 2] = records[record], group.before .. payload .. group.after
    size = size + 2
    if group.apart then
      written[size] = group.before .. group.after
      written[size + 1], written[size + 2] = P .. 'x:' .. id, payload
      size = size + 2
    end
    ids[m + 1], ids[m + 2] = '0', id
    waiting[m + 1], waiting[m + 2] = group.run_at, id
    m = m + 2
  end
  local lists = shared(names, group.status, group.queue, group.type, named)
  listed[#listed + 1] = {lists.view, ids}
  if group.status == 'q' then
    local line = group.queue .. SEP .. group.type .. SEP .. group.priority
    lines[line] = group.priority
    listed[#listed + 1] = {P .. 'w:' .. line, waiting}
    told_queued(group.queue, m / 2)
    local turns = P .. 'fair:' .. group.queue .. SEP .. group.priority
    if redis.call('EXISTS', turns) == 1 then
      stand_beside(turns, waiting)
    end
  else
    listed[#listed + 1] = {DUE, waiting}
    news.due = true
  end
  if group.expiry ~= '' then
    local expiring = {}
    for place = 2, m, 2 do
      expiring[place - 1], expiring[place] = group.expiry, ids[place]
    end
    listed[#listed + 1] = {P .. 'expiring', expiring}
    news.due = true
  end
  lists.n = lists.n + m / 2
end
for first = 1, size, MOST do
  redis.call('MSET', unpack(written, first, math.min(first + MOST - 1, size)))
end
for _, list in ipairs(listed) do
  in_parts('ZADD', list[1], list[2])
end
flush()
know_queues(groups)
wake()
return 1
