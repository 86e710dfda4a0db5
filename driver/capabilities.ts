/**
 * Capabilities of the device, as the driver has read them: QUERY_FW, QUERY_DEV_CAP and QUERY_PORT with the rules that
 * Linux applies to them (interface sheet 3.5, 3.7, 3.13).
 */

import {
  Bar,
  commandInterfaceRevision,
  ExtendedFlag,
  hasFlag,
  queryDevCap,
  queryFw,
  queryPort,
  uarPageBytes,
} from '../abi/index.ts';
import { bytesPerMib, type Decoded } from '../base/index.ts';
import type { CommandInterface } from './command-interface.ts';
import { KernelError } from './kernel-error.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

export type Firmware = Decoded<typeof queryFw>;
export type DeviceLimits = Decoded<typeof queryDevCap>;
export type PortLimits = Decoded<typeof queryPort>;

/** Pages below are never handed out as doorbell pages of queues: they carry the doorbells of EQs. */
const uarPagesKeptForEqs = 128;
const eqsMax = 128;

export async function queryFirmware(cpu: Cpu, commands: CommandInterface): Promise<Firmware> {
  const firmware = await commands.query(cpu, 'QUERY_FW', {}, (bytes, at) => queryFw.decode(bytes, at));
  if (firmware.commandInterfaceRevision !== commandInterfaceRevision) {
    throw new KernelError(
      'ENODEV',
      `command interface revision is ${firmware.commandInterfaceRevision}, expected ${commandInterfaceRevision}`,
    );
  }
  if (firmware.firmwarePages === 0)
    throw new KernelError('ENODEV', 'QUERY_FW: firmware pages are 0, expected at least 1');
  return firmware;
}

/** Reads the limits and refuses what Linux refuses. */
export async function queryLimits(
  cpu: Cpu,
  commands: CommandInterface,
  platform: DriverPlatform,
): Promise<DeviceLimits> {
  const limits = await commands.query(cpu, 'QUERY_DEV_CAP', {}, (bytes, at) => queryDevCap.decode(bytes, at));
  if (limits.logMinPageBytes > 12)
    throw new KernelError(
      'ENODEV',
      `QUERY_DEV_CAP: the smallest page is 2^${limits.logMinPageBytes} bytes, expected at most 4 KiB`,
    );
  if (limits.ports < 1 || limits.ports > 2)
    throw new KernelError('ENODEV', `QUERY_DEV_CAP: ports is ${limits.ports}, expected 1 or 2`);
  if (uarAreaBytesOf(limits) > platform.pci.bars[Bar.UAR]!.sizeBytes) {
    throw new KernelError(
      'ENODEV',
      `the UAR area has ${uarAreaBytesOf(limits)} bytes, expected at most the ${platform.pci.bars[Bar.UAR]!.sizeBytes} of BAR2`,
    );
  }
  return limits;
}

export const queryPortLimits = (cpu: Cpu, commands: CommandInterface, port: number): Promise<PortLimits> =>
  commands.query(cpu, 'QUERY_PORT', { inputModifier: port }, (bytes, at) => queryPort.decode(bytes, at));

/** Connections of QPs are those of iWARP, over TCP connections of the device. */
export const hasIwarp = ({ extendedFlags }: DeviceLimits): boolean =>
  hasFlag(extendedFlags, ExtendedFlag.IWARP);

export const uarAreaBytesOf = (limits: DeviceLimits): number => 2 ** limits.logUarAreaMib * bytesPerMib;
export const uarCountOf = (limits: DeviceLimits): number => uarAreaBytesOf(limits) / uarPageBytes;
export const reservedUarsOf = (limits: DeviceLimits): number =>
  Math.max(uarPagesKeptForEqs, limits.reservedUars);
export const reservedEqsOf = (limits: DeviceLimits): number =>
  Math.max(4 * limits.reservedUars, 2 ** limits.logReservedEqs);
export const eqCountOf = (limits: DeviceLimits): number => Math.min(2 ** limits.logMaxEqs, eqsMax);

/** Bytes of one BlueFlame register, 0 without BlueFlame. */
export const blueFlameRegisterBytesOf = (limits: DeviceLimits): number =>
  limits.blueFlame === 1 ? 2 ** limits.logBlueFlameRegisterBytes : 0;

/** First QPN of the block of special QPs: above the firmware's and the raw Ethernet zone of 256. */
export function specialQpBaseOf(limits: DeviceLimits): number {
  const rawZoneEnd = 2 ** limits.logReservedQps + 256;
  return 2 ** Math.ceil(Math.log2(rawZoneEnd + 1));
}
