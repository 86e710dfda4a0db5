/** Rules of device-managed flow steering: the mailbox of FLOW_ATTACH is a head and records, each with its size. Source: interface sheet 3.18. */
import { bits8, bits32, bytes, layout, named, u8, u16, u32 } from '../base/index.ts';

/** Frames that a rule matches: those that its records describe; or frames that no such rule matches, either all of them or those to groups. */
export const FlowRuleType = { REGULAR: 0, ALL_DEFAULT: 1, GROUP_DEFAULT: 3 } as const;
export type FlowRuleType = (typeof FlowRuleType)[keyof typeof FlowRuleType];

export const FlowRecordId = {
  ETHERNET: 0xe001,
  IPV4: 0xe002,
  TCP: 0xe004,
  INFINIBAND: 0xe005,
  UDP: 0xe006,
} as const;
export type FlowRecordId = (typeof FlowRecordId)[keyof typeof FlowRecordId];

const big = (sizeBytes: number) => ({ sizeBytes, byteOrder: 'big', source: 'sheet 3.18' }) as const;

export const flowRule = layout('flow rule', big(16), {
  priority: u16(0x00, 'the lower comes first'),
  type: named(u8(0x02), FlowRuleType),
  isLast: bits8(0x03, 0, 0, 'before those of its priority that are there'),
  isExclusive: bits8(0x03, 2, 2),
  allowsLoopback: bits8(0x03, 3, 3),
  port: u8(0x07),
  qpn: bits32(0x08, 23, 0),
});

const head = { sizeDwords: u8(0x00), id: u16(0x02) } as const;

export const flowRecordHead = layout('flow record', big(4), head);

export const flowEthernet = layout('Ethernet flow record', big(48), {
  ...head,
  destinationMac: bytes(0x0a, 6),
  destinationMacMask: bytes(0x12, 6),
  sourceMac: bytes(0x1a, 6),
  sourceMacMask: bytes(0x22, 6),
  etherTypeEnabled: u8(0x29),
  etherType: u16(0x2a),
  vlanMask: u16(0x2c),
  vlan: u16(0x2e),
});

export const flowIpv4 = layout('IPv4 flow record', big(24), {
  ...head,
  destination: u32(0x08),
  destinationMask: u32(0x0c),
  source: u32(0x10),
  sourceMask: u32(0x14),
});

export const flowPorts = layout('TCP or UDP flow record', big(24), {
  ...head,
  destinationPort: u16(0x0a),
  destinationPortMask: u16(0x0e),
  sourcePort: u16(0x12),
  sourcePortMask: u16(0x16),
});

/** Longest rule: a head and one record of each layer. */
export const flowRuleBytesMax =
  flowRule.sizeBytes + flowEthernet.sizeBytes + flowIpv4.sizeBytes + flowPorts.sizeBytes;
