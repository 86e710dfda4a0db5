/**
 * Management datagrams in words. Three come from real hardware (Wireshark's public capture infiniband.pcap, frames 2,
 * 32 and 33; tshark names class, method, attribute and fields the same); the others are written out from the field
 * offsets in IBTA vol 1.
 */
import { expect, it } from 'vitest';
import { decodeInfiniband, encodePacket, Opcode, type WirePacket } from '../../wire/index.ts';
import { madWords } from './mad-words.ts';

/** A MAD of 256 bytes with hexadecimal pieces at given offsets. */
function madOf(pieces: Readonly<Record<number, string>>): Uint8Array {
  const bytes = new Uint8Array(256);
  for (const [at, piece] of Object.entries(pieces))
    bytes.set(Buffer.from(piece.replaceAll(' ', ''), 'hex'), Number(at));
  return bytes;
}

/** @param qp the destination QP */
function packetOf(payload: Uint8Array, qp = 1, queueKey = 0x8001_0000): WirePacket {
  const bytes = encodePacket({
    lrh: { linkNextHeader: 2 },
    bth: { opcode: Opcode.UD_SEND_ONLY, destinationQp: qp },
    headers: { DETH: { queueKey, sourceQp: qp } },
    payload,
  });
  const read = decodeInfiniband(bytes);
  if (read.kind !== 'packet') throw new Error(JSON.stringify(read));
  return read;
}

const wordsOf = (pieces: Readonly<Record<number, string>>, qp = 1): string | undefined =>
  madWords(packetOf(madOf(pieces), qp));

it.each<[string, Record<number, string>, string]>([
  [
    'SMInfo of a directed route',
    {
      0: '0181018180000102 0001509c000125c8 0020',
      32: 'ffffffff',
      64: '0002c9020020b4dd 0000000000000000 0000923a 03',
      128: '000203',
    },
    'SubnGetResp(SMInfo), hop 1 of 2 by ports 2,3, GUID 0x2c9020020b4dd, priority 0, master, activity 37434',
  ],
  [
    'a query for a path',
    {
      0: '0103020100000000 0000000bb9647f9e 0035',
      48: '000000000000340c',
      64: 'fe800000000000000002c90300001895 fe800000000000000002c9020024f636 0000 0000 00000000 0001 ffff',
    },
    'SubnAdmGet(PathRecord), components 0x340c, from fe80::2:c902:24:f636 LID 0, to fe80::2:c903:0:1895 LID 0, P_Key 0xffff, SL 0, MTU code 0, rate code 0',
  ],
  [
    'its answer',
    {
      0: '0103028100000000 0000000bb9647f9e 0035',
      44: '0008 0000 000000000000340c',
      64: 'fe800000000000000002c90300001895 fe800000000000000002c9020024f636 0002 0004 00000000 0080 ffff 0000 84 83 92',
    },
    'SubnAdmGetResp(PathRecord), components 0x340c, from fe80::2:c902:24:f636 LID 4, to fe80::2:c903:0:1895 LID 2, P_Key 0xffff, SL 0, MTU 2048, rate code 3',
  ],
  [
    'NodeInfo (14.2.5.3)',
    {
      0: '01010181 0000 0000 0000000000000001 0011',
      64: '01 01 01 02 0002c90300000003 0002c90300000000 0002c90300000001 0080 1003 00000000 01 0002c9',
    },
    'SubnGetResp(NodeInfo), channel adapter of 2 ports, node GUID 0x2c90300000000, port GUID 0x2c90300000001, port 1, device 0x1003',
  ],
  [
    'NodeDescription (14.2.5.2)',
    { 0: '01010181 0000 0000 0000000000000001 0010', 64: '6d6c78 1b 34' },
    'SubnGetResp(NodeDescription), "mlx?4"',
  ],
  [
    'PortInfo (14.2.5.6), set for port 2',
    {
      0: '01010102 0000 0000 0000000000000001 0015 0000 00000002',
      72: 'fe80000000000000 0005 0001 02510868',
      96: '24 52',
      98: '01 00 40',
    },
    'SubnSet(PortInfo), modifier 0x2, LID 5, LMC 1, SM LID 1, prefix 0xfe80000000000000, state active, physical state link up, MTU 2048, capabilities 0x2510868',
  ],
  [
    'P_KeyTable (14.2.5.7)',
    { 0: '01010181 0000 0000 0000000000000001 0016', 64: 'ffff 8001' },
    'SubnGetResp(P_KeyTable), P_Keys 0xffff 0x8001',
  ],
  [
    'GUIDInfo (14.2.5.5) of an attribute that is refused',
    { 0: '01010181 000c 0000 0000000000000001 0014' },
    'SubnGetResp(GUIDInfo), status 0xc method and attribute not supported, GUIDs none',
  ],
  [
    'PortCounters (16.1.3.5)',
    {
      0: '01040181 0000 0000 0000000000000001 0012',
      64: '00 01 0000 0007 00 00 0003',
      88: '00000064 000000c8 0000000a 00000014',
    },
    'PerfGetResp(PortCounters), port 1, SymbolErrorCounter 7, PortRcvErrors 3, PortXmitData 100, PortRcvData 200, PortXmitPkts 10, PortRcvPkts 20',
  ],
  [
    'PortCountersExtended (16.1.4.11), asked for',
    { 0: '01040101 0000 0000 0000000000000001 001d', 64: '00 02' },
    'PerfGet(PortCountersExtended), port 2',
  ],
  [
    'MCMemberRecord (15.2.5.17)',
    {
      0: '01030202 0000 0000 0000000000000001 0038',
      48: '0000000000010003',
      56: 'ff12401bffff00000000000000000001 fe800000000000000002c90300000001 00000b1b c001',
      96: 'ffff',
      104: '01',
    },
    'SubnAdmSet(MCMemberRecord), components 0x10003, group ff12:401b:ffff::1 LID 0xc001, port fe80::2:c903:0:1, Q_Key 0xb1b, P_Key 0xffff, join state 1',
  ],
  [
    'a second segment of RMPP (13.6.2), which has no record at its beginning',
    { 0: '01030292 0000 0000 0000000000000001 0011', 24: '01 01 01 00 00000002' },
    'SubnAdmGetTableResp(NodeRecord), RMPP data 2',
  ],
  [
    'an attribute and a class without a name',
    { 0: '010a0101 0000 0000 0000000000000001 0077' },
    'class 0xa Get(0x77)',
  ],
])('IBTA 13.4: shows class, method, attribute and fields of %s', (_what, pieces, words) => {
  const isSubnet = /^01[08]1/.test(pieces[0]!);
  expect(wordsOf(pieces, isSubnet ? 0 : 1)).toBe(words);
});

it('accepts no other datagram of 256 bytes as a MAD', () => {
  const mad = madOf({ 0: '01070203 0000 0000 0000000000000001 0014' });
  expect(madWords(packetOf(mad, 1))).toMatch(/^CM RTU/);
  expect(madWords(packetOf(mad, 77))).toMatch(/^CM RTU/);
  expect(madWords(packetOf(mad, 77, 0x1111_1111))).toBe(undefined);
  expect(madWords(packetOf(mad.subarray(0, 252), 1))).toBe(undefined);
});
