-- ARGV: layout. Answers in words what differs: the layout, and lists that do not hold what is counted. Only reads.
local told = {}
if redis.call('HGET', P .. 'meta', 'layout') ~= ARGV[1] then
  told[1] = 'the layout of the keys is not written down as windlass made it'
end
local lists, expected = {}, {}

local function expect(list, n)
  if not expected[list] then
    lists[#lists + 1] = list
  end
  expected[list] = (expected[list] or 0) + n
end

local counts = redis.call('HGETALL', COUNTS)
for at = 1, #counts, 2 do
  local status, queue, type_ = string.match(counts[at], '^(.*)' .. SEP .. '(.*)' .. SEP .. '(.*)$')
  local of, n = named(status, queue, type_), tonumber(counts[at + 1])
  expect(of.view, n)
  if status == 'p' then
    expect(of.leases, n)
  end
end
for _, list in ipairs(lists) do
  local listed = redis.call('ZCARD', list)
  if listed ~= expected[list] then
    local name = string.gsub(string.sub(list, #P + 1), SEP, ' ')
    told[#told + 1] = 'the list ' .. name .. ' holds ' .. listed .. ' jobs, counted are ' .. expected[list]
  end
end
return told
