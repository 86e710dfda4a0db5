/** The tables of ICM that have an entry for each QP. */
import { hasIwarp } from './capabilities.ts';
import type { Device } from './device.ts';
import type { IcmTable } from './icm-table.ts';
import type { Cpu } from './platform.ts';

/** The tables a QP has entries in, in the order of mapping. With iWARP the table `auxc` has TCP connections. */
const tablesOf = (device: Device): readonly IcmTable[] => [
  device.icm.qpc,
  ...(hasIwarp(device.limits) ? [] : [device.icm.auxc]),
  device.icm.altc,
  device.icm.rdmarc,
  device.icm.cmptQp,
];

const slotOf = (device: Device, qpn: number): number => qpn & (device.profile.counts.qpc - 1);

/** Maps what a context needs; the counterpart is {@link releaseContext}. */
export async function useContext(cpu: Cpu, device: Device, qpn: number): Promise<void> {
  const used: IcmTable[] = [];
  try {
    for (const table of tablesOf(device)) {
      await table.use(cpu, slotOf(device, qpn));
      used.push(table);
    }
  } catch (error) {
    for (const table of used.reverse()) await table.release(cpu, slotOf(device, qpn));
    throw error;
  }
}

export async function releaseContext(cpu: Cpu, device: Device, qpn: number): Promise<void> {
  for (const table of [...tablesOf(device)].reverse()) await table.release(cpu, slotOf(device, qpn));
}
