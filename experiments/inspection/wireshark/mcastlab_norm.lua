-- A post-dissector of Wireshark for NORM (RFC 5740) as NRL NORM and mcastlab speak it.
--
-- It reads the NORM header of UDP datagrams itself, whatever dissector Wireshark chose, and adds the fields mcastlab.* that the
-- colours and columns of the profile "mcastlab" use: which symbol a message carries, whether it is a repair and of which packet,
-- and whether the capture says that the packet was lost (mcastlab writes that into the comments of packets).
--
--   tshark -X lua_script:mcastlab_norm.lua -r capture.pcapng -Y 'mcastlab.lost' -T fields -e frame.number -e mcastlab.what

local norm = Proto("mcastlab", "NORM as mcastlab sees it")

local TYPES = {[1] = "info", [2] = "data", [3] = "command", [4] = "nack", [5] = "ack", [6] = "report"}
local FLAVOURS = {
  [1] = "flush", [2] = "eot", [3] = "squelch", [4] = "cc", [5] = "repair_adv", [6] = "ack_req", [7] = "application",
}
local BASES = {[1] = 16, [2] = 16, [3] = 16, [4] = 24, [5] = 24, [6] = 8}
local LEVELS = {{8, "object"}, {2, "block"}, {1, "segment"}, {4, "info"}}
local CC_FLAGS = {{1, "CLR"}, {2, "PLR"}, {4, "RTT"}, {8, "START"}, {16, "LEAVE"}, {32, "LIMIT"}}
local FLAG_REPAIR, FLAG_STREAM = 1, 32
local EXT_FTI, EXT_CC, EXT_RATE, EXT_AUTH, EXT_APP_ACK = 64, 3, 128, 1, 65
local EXTENSIONS = {[EXT_FTI] = "FTI", [EXT_CC] = "CC", [EXT_RATE] = "RATE", [EXT_AUTH] = "AUTH", [EXT_APP_ACK] = "APP_ACK"}

local f = norm.fields
f.kind = ProtoField.string("mcastlab.kind", "Kind")
f.what = ProtoField.string("mcastlab.what", "What")
f.source = ProtoField.uint32("mcastlab.source", "Node")
f.sender = ProtoField.uint32("mcastlab.sender", "Sender")
f.sequence = ProtoField.uint16("mcastlab.sequence", "Sequence")
f.object = ProtoField.uint16("mcastlab.object", "Object")
f.block = ProtoField.uint32("mcastlab.block", "Block")
f.symbol = ProtoField.uint16("mcastlab.symbol", "Symbol")
f.parity = ProtoField.bool("mcastlab.parity", "Parity")
f.repair = ProtoField.bool("mcastlab.repair", "Repair")
f.first = ProtoField.framenum("mcastlab.first", "First transmission in", base.NONE)
f.again = ProtoField.framenum("mcastlab.again", "Sent before in", base.NONE)
f.asked = ProtoField.framenum("mcastlab.asked", "Requested in", base.NONE, frametype.REQUEST)
f.requests = ProtoField.string("mcastlab.requests", "Requests")
f.lost = ProtoField.bool("mcastlab.lost", "Lost")
f.grtt = ProtoField.double("mcastlab.grtt", "GRTT [s]")
f.rate = ProtoField.double("mcastlab.rate", "Rate [bytes/s]")
f.rtt = ProtoField.double("mcastlab.rtt", "Round-trip time [s]")
f.loss = ProtoField.double("mcastlab.loss", "Loss")
f.clr = ProtoField.uint32("mcastlab.clr", "Current limiting receiver")
f.acking = ProtoField.uint32("mcastlab.acking", "Asked for an ACK")
f.extension = ProtoField.string("mcastlab.extension", "Extension")
f.stream_offset = ProtoField.uint32("mcastlab.stream.offset", "Offset in the stream")
f.stream_length = ProtoField.uint16("mcastlab.stream.length", "Bytes of the stream")
f.stream_start = ProtoField.uint16("mcastlab.stream.msg_start", "Message starts at")

local comment_of = Field.new("frame.comment")
local payload_of = Field.new("udp.payload")

-- What the capture has shown so far: the coding of objects, the frames in which each symbol was sent first and last, and the
-- latest request of each block. Wireshark dissects packets in order the first time, and only then these tables are filled.
local codings, sent, asked, seen

function norm.init()
  codings, sent, asked, seen = {}, {}, {}, {}
end

local function rtt_of(code)
  return code < 31 and (code + 1) * 1e-6 or 1000 / math.exp((255 - code) / 13)
end

local function rate_of(code)
  return math.floor(code / 16) * 10 / 4096 * 10 ^ (code % 16)
end

local function has(flags, bit)
  return math.floor(flags / bit) % 2 == 1
end

-- The block, the symbol, the number of source symbols if the id has it, and the bytes of an fec_payload_id.
local function payload_id(data, at, fec, m)
  if fec == 129 then
    return data:range(at, 4):uint(), data:range(at + 6, 2):uint(), data:range(at + 4, 2):uint(), 8
  elseif fec == 5 or (fec == 2 and m == 8) then
    return data:range(at, 3):uint(), data:range(at + 3, 1):uint(), nil, 4
  end
  return data:range(at, 2):uint(), data:range(at + 2, 2):uint(), nil, 4
end

-- The source symbols of a block (RFC 5052 9.1).
local function length_of(coding, block)
  if not coding then
    return nil
  end
  if coding.stream or coding.size == 0 then
    return coding.block
  end
  local total = math.ceil(coding.size / coding.segment)
  local blocks = math.ceil(total / coding.block)
  local small = math.floor(total / blocks)
  return block < total - small * blocks and small + 1 or small
end

local function read_fti(data, at, fec)
  local coding = {size = data:range(at + 2, 2):uint() * 2 ^ 32 + data:range(at + 4, 4):uint()}
  if fec == 5 then
    coding.segment, coding.block = data:range(at + 8, 2):uint(), data:range(at + 10, 1):uint()
  elseif fec == 2 then
    coding.m, coding.segment, coding.block =
      data:range(at + 8, 1):uint(), data:range(at + 10, 2):uint(), data:range(at + 12, 2):uint()
  elseif fec == 0 then
    coding.segment, coding.block = data:range(at + 10, 2):uint(), data:range(at + 12, 4):uint()
  else
    coding.segment, coding.block = data:range(at + 10, 2):uint(), data:range(at + 12, 2):uint()
  end
  return coding
end

-- Call visit(het, offset, bytes) for each header extension.
local function each_extension(data, at, stop, visit)
  while at + 4 <= stop do
    local het = data:range(at, 1):uint()
    local size = het >= 128 and 4 or data:range(at + 1, 1):uint() * 4
    if size == 0 or at + size > stop then
      return
    end
    visit(het, at, size)
    at = at + size
  end
end

local function name_of(object, block, symbol, length)
  if not block then
    return tostring(object)
  end
  local last = length and symbol >= length and "p" .. (symbol - length) or tostring(symbol)
  return object .. "." .. block .. "." .. last
end

-- The repair requests in the payload of NACK and REPAIR_ADV, as text and as a list of "object.block" keys.
local function read_requests(data, at, coding_of)
  local texts, keys = {}, {}
  while at + 4 <= data:len() and #texts < 64 do
    local form, level, size = data:range(at, 1):uint(), data:range(at + 1, 1):uint(), data:range(at + 2, 2):uint()
    local stop = math.min(at + 4 + size, data:len())
    at = at + 4
    local items = {}
    while at + 8 <= stop do
      local fec, object = data:range(at, 1):uint(), data:range(at + 2, 2):uint()
      local coding = coding_of(object)
      local id = fec == 129 and 8 or 4
      if at + 4 + id > stop then
        break
      end
      local block, symbol, own = payload_id(data, at + 4, fec, coding and coding.m)
      local length = own or length_of(coding, block)
      for _, known in ipairs(LEVELS) do
        if has(level, known[1]) then
          local name = known[2] == "segment" and name_of(object, block, symbol, length)
            or known[2] == "block" and object .. "." .. block or known[2] == "info" and "info " .. object or tostring(object)
          items[#items + 1] = name
          keys[#keys + 1] = (known[2] == "segment" or known[2] == "block") and object .. "." .. block or tostring(object)
          break
        end
      end
      at = at + 4 + id
    end
    texts[#texts + 1] = table.concat(items, form == 2 and "-" or ", ")
    at = stop
  end
  return table.concat(texts, ", "), keys
end

-- Whether bytes are a NORM message: version 1, a known type, and a header of a possible length.
local function is_norm(data)
  if data:len() < 8 then
    return false
  end
  local first, words = data:range(0, 1):uint(), data:range(1, 1):uint()
  local base = BASES[first % 16]
  return math.floor(first / 16) == 1 and base ~= nil and words * 4 >= base and words * 4 <= data:len()
end

local function add_cc(tree, data, at)
  local range = data:range(at, 12)
  local extension = tree:add(f.extension, range, "CC")
  extension:add(f.rtt, data:range(at + 5, 1), rtt_of(data:range(at + 5, 1):uint()))
  local loss = data:range(at + 6, 2):uint() * 65536 + data:range(at + 10, 2):uint()
  extension:add(f.loss, data:range(at + 6, 2), loss / 4294967295)
  extension:add(f.rate, data:range(at + 8, 2), rate_of(data:range(at + 8, 2):uint()))
end

-- Content: DATA and INFO. Returns the text of the column.
local function content(tree, data, pinfo, kind, source, header)
  local flags, fec, object = data:range(12, 1):uint(), data:range(13, 1):uint(), data:range(14, 2):uint()
  local key = source .. "/" .. data:range(8, 2):uint() .. "/" .. object
  local base = 16
  if kind == "data" then
    base = 16 + (fec == 129 and 8 or 4)
  end
  each_extension(data, base, header, function(het, at, size)
    if het == EXT_FTI and size >= 12 then
      local coding = read_fti(data, at, fec)
      coding.stream = has(flags, FLAG_STREAM)
      codings[key] = coding
    end
  end)
  tree:add(f.object, data:range(14, 2))
  local coding, name, part = codings[key], tostring(object), tostring(object)
  local is_parity = false
  if kind == "data" then
    local block, symbol, own, size = payload_id(data, 16, fec, coding and coding.m)
    local length = own or length_of(coding, block)
    tree:add(f.block, data:range(16, size), block)
    tree:add(f.symbol, data:range(16, size), symbol)
    name, part = name_of(object, block, symbol, length), object .. "." .. block
    is_parity = length ~= nil and symbol >= length
    if is_parity then
      tree:add(f.parity, data:range(16, size), true)
    end
    if has(flags, FLAG_STREAM) and not is_parity and data:len() >= header + 8 then
      tree:add(f.stream_length, data:range(header, 2))
      tree:add(f.stream_start, data:range(header + 2, 2))
      tree:add(f.stream_offset, data:range(header + 4, 4))
    end
  end
  -- Copies of one message at several interfaces have one sequence number.
  local symbol_key, sequence = key .. "/" .. name .. "/" .. kind, data:range(2, 2):uint()
  local scope = source .. "/" .. data:range(8, 2):uint() .. "/"
  if not seen[pinfo.number] then
    local before, state = sent[symbol_key], {}
    if before and before.sequence ~= sequence then
      state.first, state.again = before.first, before.last
    elseif before then
      state = before.state
    end
    state.asked = state.asked or asked[scope .. part] or asked[scope .. object]
    state.repair = has(flags, FLAG_REPAIR) or state.again ~= nil or (is_parity and state.asked ~= nil)
    if not state.repair then
      state.asked = nil
    end
    sent[symbol_key] = {first = before and before.first or pinfo.number, last = pinfo.number, sequence = sequence, state = state}
    seen[pinfo.number] = state
  end
  local state = seen[pinfo.number] or {}
  if state.repair then
    tree:add(f.repair, data:range(12, 1), true)
  end
  for field, number in pairs({first = state.first, again = state.again, asked = state.asked}) do
    tree:add(f[field], data:range(0, 0), number):set_generated()
  end
  return (state.repair and "repair: " or "") .. kind .. " " .. name
end

local function command(tree, data, flavour, source, header)
  local text = flavour
  local fec, object = data:range(13, 1):uint(), data:range(14, 2):uint()
  if flavour == "flush" or flavour == "squelch" then
    local coding = codings[source .. "/" .. data:range(8, 2):uint() .. "/" .. object]
    local block, symbol, own, size = payload_id(data, 16, fec, coding and coding.m)
    tree:add(f.object, data:range(14, 2))
    tree:add(f.block, data:range(16, size), block)
    tree:add(f.symbol, data:range(16, size), symbol)
    text = text .. " " .. name_of(object, block, symbol, own or length_of(coding, block))
    if flavour == "flush" then
      for at = header, data:len() - 4, 4 do
        tree:add(f.acking, data:range(at, 4))
      end
    end
  elseif flavour == "cc" then
    each_extension(data, 24, header, function(het, at, size)
      if het == EXT_RATE then
        tree:add(f.rate, data:range(at + 2, 2), rate_of(data:range(at + 2, 2):uint()))
      end
    end)
    for at = header, data:len() - 8, 8 do
      local flags = data:range(at + 4, 1):uint()
      if has(flags, 1) then
        local node = tree:add(f.clr, data:range(at, 4))
        node:add(f.rtt, data:range(at + 5, 1), rtt_of(data:range(at + 5, 1):uint()))
        node:add(f.rate, data:range(at + 6, 2), rate_of(data:range(at + 6, 2):uint()))
        text = text .. ", CLR " .. data:range(at, 4):uint()
      end
    end
  end
  return text
end

local function feedback(tree, data, pinfo, kind, scope, start)
  local text, keys = read_requests(data, start, function(object)
    return codings[scope .. object]
  end)
  tree:add(f.requests, data:range(start), text)
  if not seen[pinfo.number] then
    seen[pinfo.number] = {}
    for _, key in ipairs(keys) do
      asked[scope .. key] = pinfo.number
    end
  end
  return kind .. " " .. text
end

local function message(tree, data, pinfo)
  local type, header = data:range(0, 1):uint() % 16, data:range(1, 1):uint() * 4
  local source = data:range(4, 4):uint()
  local kind = TYPES[type]
  if kind == "command" then
    kind = FLAVOURS[data:range(12, 1):uint()] or "command"
  end
  tree:add(f.kind, data:range(0, 1), kind)
  tree:add(f.sequence, data:range(2, 2))
  tree:add(f.source, data:range(4, 4))
  local text = kind
  if type <= 3 then
    tree:add(f.grtt, data:range(10, 1), rtt_of(data:range(10, 1):uint()))
  elseif type <= 5 then
    tree:add(f.sender, data:range(8, 4))
  end
  local scope = source .. "/" .. (type <= 3 and data:range(8, 2):uint() or 0) .. "/"
  if type == 1 or type == 2 then
    text = content(tree, data, pinfo, kind, source, header)
  elseif kind == "repair_adv" then
    text = feedback(tree, data, pinfo, kind, scope, header)
  elseif type == 3 then
    text = command(tree, data, kind, source, header)
  elseif type == 4 then
    text = feedback(tree, data, pinfo, kind, data:range(8, 4):uint() .. "/" .. data:range(12, 2):uint() .. "/", header)
  elseif type == 5 then
    local ack = data:range(14, 1):uint()
    text = ack == 2 and "ack of flush" or ack == 1 and "ack of cc" or "ack"
  end
  local begin = kind == "cc" and 24 or BASES[type]
  if kind == "data" or kind == "flush" or kind == "squelch" then
    begin = 16 + (data:range(13, 1):uint() == 129 and 8 or 4)
  end
  each_extension(data, begin, header, function(het, at, size)
    if het == EXT_CC and size == 12 then
      add_cc(tree, data, at)
    else
      tree:add(f.extension, data:range(at, size), EXTENSIONS[het] or tostring(het))
    end
  end)
  return text
end

function norm.dissector(tvb, pinfo, root)
  local payload = payload_of()
  if not payload then
    return
  end
  local data = payload.range:bytes():tvb("NORM")
  if not is_norm(data) then
    return
  end
  local tree = root:add(norm, payload.range)
  -- A message that was cut off, or is not NORM after all, ends here; what was read of it stays.
  local ok, text = pcall(message, tree, data, pinfo)
  if not ok then
    return
  end
  tree:add(f.what, payload.range, text):set_generated()
  local comment = comment_of()
  if comment then
    local words = tostring(comment)
    if words:find("lost by the link") or words:find("dropped by the queue") or words:find("damaged on the link") then
      tree:add(f.lost, payload.range, true):set_generated()
      text = text .. " (lost)"
    end
  end
  tree:append_text(": " .. text)
end

register_postdissector(norm)
