/** Inspection of a machine from outside: checks the places that a program names. */
import { assertRange, ConfigurationError } from '../base/index.ts';
import type { MachineConfig } from './profile/index.ts';

const configurationBytes = 4096;
const dwordBytes = 4;

/** @throws ConfigurationError unless a dword of a device's configuration space begins there */
export const checkConfigOffset = (offset: number): void => checkDword(offset, configurationBytes);

/** @throws ConfigurationError unless the device has the BAR, and a dword of it begins there */
export function checkRegister({ machine, pcie, nic }: MachineConfig, bar: number, offset: number): void {
  if (bar !== 0 && bar !== 2) throw new ConfigurationError('bar', bar, '0 or 2');
  const { bar0Bytes, bar2Bytes } = machine.adapter === 'hca' ? pcie.function : nic.function;
  checkDword(offset, bar === 0 ? bar0Bytes : bar2Bytes);
}

/** @throws ConfigurationError unless all of the bytes are in a host's physical memory */
export function checkPhysical(memoryBytes: number, address: number, lengthBytes: number): void {
  assertRange('address', address, 0, memoryBytes);
  assertRange('lengthBytes', lengthBytes, 0, memoryBytes - address);
}

function checkDword(offset: number, spaceBytes: number): void {
  if (
    Number.isInteger(offset) &&
    offset >= 0 &&
    offset + dwordBytes <= spaceBytes &&
    offset % dwordBytes === 0
  )
    return;
  throw new ConfigurationError('offset', offset, `a multiple of 4 from 0 to ${spaceBytes - dwordBytes}`);
}
