/**
 * Starts and stops the NIC: reset, ring registers, filters, moderation, interrupt causes.
 *
 *     CTRL.RST ─► rings, RXBUF, RXCSUM ─► …DCTL.ENABLE ─► MTA, VFTA ─► RCTL, TCTL ─► IVAR, EIAC, IAM, EITR ─► IMS ─► CTRL.SLU, VME
 *
 * Source: abi/nic/registers.ts; the order is that of the 82574's driver.
 */
import { eitrUnitNs, ethernetFcsBytes, nicCauseGroup, nicDescriptorBytes } from '../../abi/nic/index.ts';
import { highWordOf, lowWordOf, usToPs } from '../../base/index.ts';
import type { NetDriverConfig } from '../parameters.ts';
import type { Cpu, NetPlatform } from '../platform.ts';
import { NetError } from '../socket/index.ts';
import { type DeviceFilters, receiveSumStart } from '../stack/index.ts';
import { fieldIn, type NicRegisterFile, registerValue } from './registers.ts';

/** Vectors: data (receive and transmit together, as one poll serves both) and everything else. */
export const NicVector = { DATA: 0, OTHER: 1 } as const;
export const nicVectorCount = 2;

export const dataCauses = nicCauseGroup.receive | nicCauseGroup.transmit;
const pollPs = 1_000_000;
const allOnes = 0xffff_ffff;

/** Addresses of the rings, and the frame length. */
export interface RingPlaces {
  readonly transmitAddress: number;
  readonly transmitEntries: number;
  readonly receiveAddress: number;
  readonly receiveEntries: number;
  readonly bufferBytes: number;
  readonly frameBytesMax: number;
}

/** @throws NetError EIO if the reset does not end, or the device does not answer */
export async function resetNic(
  cpu: Cpu,
  platform: NetPlatform,
  registers: NicRegisterFile,
  limitUs: number,
): Promise<void> {
  registers.write(cpu, 'imc', allOnes);
  registers.write(cpu, 'ctrl', registerValue('ctrl', { reset: 1 }));
  await cpu.settle();
  const watch = platform.stopwatch();
  for (;;) {
    const value = await registers.read(cpu, 'ctrl');
    if (value !== allOnes && fieldIn('ctrl', 'reset', value) === 0) return;
    if (watch.elapsedPs >= usToPs(limitUs)) throw new NetError('EIO', 'the NIC does not come out of reset');
    await cpu.sleep(pollPs);
  }
}

/** The board's MAC address. */
export async function readMacAddress(cpu: Cpu, registers: NicRegisterFile): Promise<Uint8Array> {
  const low = await registers.read(cpu, 'ral');
  const high = await registers.read(cpu, 'rah');
  return Uint8Array.from([low, low >>> 8, low >>> 16, low >>> 24, high, high >>> 8]);
}

/** Programmes both rings, still empty, and enables them. */
export function programmeRings(cpu: Cpu, registers: NicRegisterFile, places: RingPlaces): void {
  const { transmitAddress, transmitEntries, receiveAddress, receiveEntries } = places;
  registers.write(cpu, 'tdbal', lowWordOf(transmitAddress));
  registers.write(cpu, 'tdbah', highWordOf(transmitAddress));
  registers.write(cpu, 'tdlen', transmitEntries * nicDescriptorBytes);
  registers.write(cpu, 'rdbal', lowWordOf(receiveAddress));
  registers.write(cpu, 'rdbah', highWordOf(receiveAddress));
  registers.write(cpu, 'rdlen', receiveEntries * nicDescriptorBytes);
  registers.write(cpu, 'rxbuf', Math.min(places.bufferBytes, 0xffff));
  registers.write(cpu, 'rxmin', 0);
  registers.write(cpu, 'rxcsum', registerValue('rxcsum', { start: receiveSumStart }));
  registers.write(cpu, 'rlpml', places.frameBytesMax + ethernetFcsBytes);
  const prefetch = 8;
  registers.write(cpu, 'txdctl', registerValue('txdctl', { prefetch, enable: 1 }));
  registers.write(cpu, 'rxdctl', registerValue('rxdctl', { prefetch, enable: 1 }));
}

/** The tables of groups and VLANs, which are empty: one bit for each hash of a group's last 12 bits, and for each VLAN. */
export function programmeFilters(cpu: Cpu, registers: NicRegisterFile, filters: DeviceFilters): void {
  const hashes = filters.groups.map((mac) => (mac[5]! << 4) | (mac[4]! >> 4));
  for (const [name, members] of [
    ['mta', hashes],
    ['vfta', filters.vlans],
  ] as const) {
    const dwords = new Map<number, number>();
    for (const member of members)
      dwords.set(member >> 5, (dwords.get(member >> 5) ?? 0) | (1 << (member & 31)));
    for (const [index, value] of dwords) registers.write(cpu, name, value, index);
  }
}

/** Reception, moderation, interrupts; then the link is requested. */
export function startNic(cpu: Cpu, registers: NicRegisterFile, config: NetDriverConfig): void {
  registers.write(
    cpu,
    'rctl',
    registerValue('rctl', { enable: 1, longPackets: 1, broadcast: 1, vlanFilter: 1 }),
  );
  registers.write(cpu, 'tctl', registerValue('tctl', { enable: 1, padShort: 1 }));
  registers.write(
    cpu,
    'ivar',
    registerValue('ivar', {
      receiveVector: NicVector.DATA,
      receiveValid: 1,
      transmitVector: NicVector.DATA,
      transmitValid: 1,
      otherVector: NicVector.OTHER,
      otherValid: 1,
    }),
  );
  registers.write(cpu, 'eiac', dataCauses | nicCauseGroup.other);
  registers.write(cpu, 'iam', dataCauses);
  registers.write(cpu, 'eitr', Math.round(config.interruptIntervalNs / eitrUnitNs), NicVector.DATA);
  registers.write(cpu, 'eict', config.interruptCount, NicVector.DATA);
  registers.write(cpu, 'ims', dataCauses | nicCauseGroup.other);
  registers.write(cpu, 'ctrl', registerValue('ctrl', { setLinkUp: 1, vlanMode: 1 }));
}

/** Whether a queue has stopped because of an error. */
export async function hasFault(cpu: Cpu, registers: NicRegisterFile): Promise<boolean> {
  const transmit = await registers.read(cpu, 'txdctl');
  const receive = await registers.read(cpu, 'rxdctl');
  return fieldIn('txdctl', 'fault', transmit) === 1 || fieldIn('rxdctl', 'fault', receive) === 1;
}

async function isLinkUp(cpu: Cpu, registers: NicRegisterFile): Promise<boolean> {
  const value = await registers.read(cpu, 'status');
  return value !== allOnes && fieldIn('status', 'linkUp', value) === 1;
}

/** Waits for the link, for a limited time. */
export async function untilLinkUp(
  cpu: Cpu,
  platform: NetPlatform,
  registers: NicRegisterFile,
  limitUs: number,
): Promise<boolean> {
  await cpu.settle();
  const watch = platform.stopwatch();
  while (!(await isLinkUp(cpu, registers))) {
    if (watch.elapsedPs >= usToPs(limitUs)) return false;
    await cpu.sleep(10 * pollPs);
  }
  return true;
}
