-- ARGV: name and record of each schedule. A changed rule starts from its own next tick; an unchanged one must not skip
-- or repeat the tick it stands at.
for at = 1, #ARGV, 2 do
  local fresh, found = split(ARGV[at + 1]), redis.call('HGET', P .. 'schedules', ARGV[at])
  if found then
    local known = split(found)
    if known[EXPRESSION] == fresh[EXPRESSION] and known[ZONE] == fresh[ZONE] then
      fresh[NEXT] = known[NEXT]
    end
    fresh[LAST], fresh[PAUSED] = known[LAST], known[PAUSED]
  end
  fresh[UPDATED] = NOW
  write_schedule(ARGV[at], fresh)
end
if #ARGV > 0 then
  stand_all()
  news.due = true
end
wake()
return 1
