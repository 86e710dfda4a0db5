/**
 * Multicast groups: MGID_HASH, READ_MCG, WRITE_MCG. The table is private to the device: software reaches it only by these
 * commands. Source: interface sheet 3.18, 5.6.
 */
import {
  CommandStatus,
  defaultMcgModifier,
  mcgHead,
  mcgMembersMax,
  mgidHash,
} from '../../../../abi/index.ts';
import { viewOf } from '../../../../base/index.ts';
import { type CommandRequest, demand, type OutImmediate, type Steps } from '../../commands/index.ts';
import { logMaxQpsPerGroup } from './device-capabilities.ts';
import type { DeviceState } from './device-state.ts';
import { readInBox, writeOutBox } from './mailboxes.ts';

const writeEntry = 0;
const writeDefault = 1;

/** Any deterministic function serves: software and device both use this answer. Here FNV-1a, folded to the hash part. */
export function* hashGroup(device: DeviceState, request: CommandRequest): Steps<OutImmediate> {
  const { mgid } = mgidHash.decode(yield* readInBox(request, mgidHash.sizeBytes));
  let hash = 0x811c_9dc5;
  for (const byte of mgid) hash = Math.imul(hash ^ byte, 0x0100_0193);
  const folded = (hash ^ (hash >>> 16)) & 0xffff;
  return { high: 0, low: folded % 2 ** Math.min(device.profile!.logMcgHashEntries, 16) };
}

export function* readGroup(device: DeviceState, request: CommandRequest): Steps<undefined> {
  demandTable(device);
  const index = entryIndex(device, request);
  yield* writeOutBox(request, device.groups.get(index) ?? new Uint8Array(entryBytes(device)));
  return undefined;
}

export function* writeGroup(device: DeviceState, request: CommandRequest): Steps<undefined> {
  demandTable(device);
  demand(request.opcodeModifier <= writeDefault, CommandStatus.BAD_OP);
  const isDefault = request.opcodeModifier !== writeEntry;
  const index = isDefault ? defaultIndex(device, request) : entryIndex(device, request);
  const entry = yield* readInBox(request, entryBytes(device));
  const memberCount = mcgHead.fields.memberCount.get(viewOf(entry), 0);
  demand(memberCount <= mcgMembersMax(device.profile!.logMcgEntryBytes), CommandStatus.BAD_PARAM);
  demand(memberCount <= 2 ** logMaxQpsPerGroup, CommandStatus.EXCEED_LIM);
  (isDefault ? device.defaultGroups : device.groups).set(index, entry);
  return undefined;
}

/** Rejects the command with device-managed steering, which has rules instead of the table. */
function demandTable({ profile }: DeviceState): void {
  demand(profile!.deviceManagedSteering === 0, CommandStatus.BAD_OP);
}

/** Each port has two default entries, for multicast and for unicast. */
function defaultIndex(device: DeviceState, request: CommandRequest): number {
  const { inputModifier } = request;
  const port = inputModifier >>> 16;
  demand(device.parts.ports[port - 1] !== undefined, CommandStatus.BAD_PARAM);
  const isNamed = [0, 1].some((steer) => inputModifier === defaultMcgModifier(port, steer));
  demand(isNamed, CommandStatus.BAD_PARAM);
  return inputModifier;
}

function entryIndex(device: DeviceState, request: CommandRequest): number {
  demand(request.inputModifier < 2 ** device.profile!.logMcgEntries, CommandStatus.BAD_INDEX);
  return request.inputModifier;
}

const entryBytes = (device: DeviceState): number => 2 ** device.profile!.logMcgEntryBytes;
