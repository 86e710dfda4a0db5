/**
 * FLOW_ATTACH and FLOW_DETACH: rules by which software steers the frames of an Ethernet port, if INIT_HCA has selected
 * device-managed steering. Source: interface sheet 3.18.
 */
import {
  CommandStatus,
  FlowRecordId,
  FlowRuleType,
  flowEthernet,
  flowIpv4,
  flowPorts,
  flowRecordHead,
  flowRule,
  flowRuleBytesMax,
} from '../../../../abi/index.ts';
import { joinWords } from '../../../../base/index.ts';
import { type CommandRequest, demand, type OutImmediate, reject, type Steps } from '../../commands/index.ts';
import type { FlowConditions, FlowMatch } from '../../port/index.ts';
import type { DeviceState } from './device-state.ts';
import { sideOf } from './ethernet-ports.ts';
import { readInBox } from './mailboxes.ts';

const TCP = 6;
const UDP = 17;
const ANY = -1;
/** Offsets in the headers at which byte masks compare. */
const macPlaces = { destination: 0, source: 6 } as const;
const ipv4Places = { source: 12, destination: 16 } as const;
const portPlaces = { source: 0, destination: 2 } as const;

export function* attachFlow(device: DeviceState, request: CommandRequest): Steps<OutImmediate> {
  demand(device.profile!.deviceManagedSteering === 1, CommandStatus.BAD_OP);
  const lengthBytes = request.inputModifier * 4;
  demand(lengthBytes >= flowRule.sizeBytes && lengthBytes <= flowRuleBytesMax, CommandStatus.BAD_PARAM);
  const box = yield* readInBox(request, lengthBytes);
  const { priority, type, isLast, port, qpn } = flowRule.decode(box);
  const { steering } = sideOf(device, port);
  const isRegular = type === FlowRuleType.REGULAR;
  const isKnown = isRegular || type === FlowRuleType.ALL_DEFAULT || type === FlowRuleType.GROUP_DEFAULT;
  demand(isKnown, CommandStatus.BAD_PARAM);
  const records = recordsOf(box);
  // A regular rule without a condition would be a default rule; DPDK's default rules have an Ethernet record without a
  // condition.
  demand(!isRegular || records.length > 0, CommandStatus.BAD_PARAM);
  demand(ruleCountOf(device) < 2 ** device.profile!.logFlowSteeringEntries, CommandStatus.EXCEED_LIM);
  const id = device.nextFlowRule++;
  const isOfGroups = type === FlowRuleType.GROUP_DEFAULT;
  const conditions = isRegular ? conditionsOf(records) : undefined;
  steering.flows.add({ id, priority, qpn, conditions, isOfGroups }, isLast === 1);
  return { high: 0, low: id };
}

/** Rules of all ports: each occupies an entry of the table that INIT_HCA gave the device. */
const ruleCountOf = ({ parts }: DeviceState): number =>
  parts.ports.reduce((sum, { ethernet }) => sum + (ethernet?.steering.flows.count ?? 0), 0);

export function detachFlow({ parts, profile }: DeviceState, request: CommandRequest): undefined {
  demand(profile!.deviceManagedSteering === 1, CommandStatus.BAD_OP);
  const id = joinWords(request.inParamHigh, request.inParamLow);
  const isThere = parts.ports.some(({ ethernet }) => ethernet?.steering.flows.remove(id) === true);
  demand(isThere, CommandStatus.BAD_INDEX);
  return undefined;
}

interface Record {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** Returns the records after the head; rejects the rule if a record does not fit or has no layout. */
function recordsOf(box: Uint8Array): Record[] {
  const records: Record[] = [];
  for (let at = flowRule.sizeBytes; at < box.length; ) {
    demand(at + flowRecordHead.sizeBytes <= box.length, CommandStatus.BAD_PARAM);
    const { id, sizeDwords } = flowRecordHead.decode(box, at);
    const sizeBytes = recordBytes[id] ?? reject(CommandStatus.BAD_PARAM);
    demand(sizeDwords * 4 === sizeBytes && at + sizeBytes <= box.length, CommandStatus.BAD_PARAM);
    records.push({ id, bytes: box.subarray(at, at + sizeBytes) });
    at += sizeBytes;
  }
  return records;
}

const recordBytes: { readonly [id: number]: number | undefined } = {
  [FlowRecordId.ETHERNET]: flowEthernet.sizeBytes,
  [FlowRecordId.IPV4]: flowIpv4.sizeBytes,
  [FlowRecordId.TCP]: flowPorts.sizeBytes,
  [FlowRecordId.UDP]: flowPorts.sizeBytes,
};

function conditionsOf(records: readonly Record[]): FlowConditions {
  const matches: FlowMatch[] = [];
  let [protocol, etherType, vlan, vlanMask] = [ANY, ANY, 0, 0];
  let needsIpv4 = false;
  for (const { id, bytes } of records) {
    if (id === FlowRecordId.ETHERNET) {
      const record = flowEthernet.decode(bytes);
      matches.push(...macMatches(record));
      if (record.etherTypeEnabled !== 0) etherType = record.etherType;
      vlan = record.vlan;
      vlanMask = record.vlanMask;
    } else {
      needsIpv4 = true;
      if (id === FlowRecordId.IPV4) matches.push(...addressMatches(bytes));
      else {
        protocol = id === FlowRecordId.TCP ? TCP : UDP;
        matches.push(...portMatches(bytes));
      }
    }
  }
  return { matches, protocol, needsIpv4, etherType, vlan, vlanMask };
}

function macMatches(record: {
  readonly destinationMac: Uint8Array;
  readonly destinationMacMask: Uint8Array;
  readonly sourceMac: Uint8Array;
  readonly sourceMacMask: Uint8Array;
}): FlowMatch[] {
  const { destinationMac, destinationMacMask, sourceMac, sourceMacMask } = record;
  return [
    { part: 'link', place: macPlaces.destination, value: destinationMac, mask: destinationMacMask },
    { part: 'link', place: macPlaces.source, value: sourceMac, mask: sourceMacMask },
  ];
}

function addressMatches(record: Uint8Array): FlowMatch[] {
  const { destination, destinationMask, source, sourceMask } = flowIpv4.decode(record);
  return [
    numberMatch('network', ipv4Places.destination, destination, destinationMask, 4),
    numberMatch('network', ipv4Places.source, source, sourceMask, 4),
  ];
}

function portMatches(record: Uint8Array): FlowMatch[] {
  const { destinationPort, destinationPortMask, sourcePort, sourcePortMask } = flowPorts.decode(record);
  return [
    numberMatch('transport', portPlaces.destination, destinationPort, destinationPortMask, 2),
    numberMatch('transport', portPlaces.source, sourcePort, sourcePortMask, 2),
  ];
}

const numberMatch = (
  part: FlowMatch['part'],
  place: number,
  value: number,
  mask: number,
  lengthBytes: number,
): FlowMatch => ({ part, place, value: bigEndian(value, lengthBytes), mask: bigEndian(mask, lengthBytes) });

const bigEndian = (value: number, lengthBytes: number): Uint8Array =>
  Uint8Array.from({ length: lengthBytes }, (_, at) => value >>> (8 * (lengthBytes - 1 - at)));
