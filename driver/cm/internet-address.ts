/** IPv4 addresses as text and as the last four of 16 bytes. */
import { require } from '../kernel-error.ts';
import type { SocketAddress } from '../rdma-cm.ts';

export const textOfIp = (bytes: Uint8Array): string => bytes.subarray(12).join('.');

/** @throws KernelError EINVAL unless it is an IPv4 address with a port */
export function requireAddress(field: string, { sinAddr, sinPort }: SocketAddress): void {
  const parts = typeof sinAddr === 'string' ? sinAddr.split('.') : [];
  const isAddress = parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256);
  require(isAddress, `${field}.sinAddr is ${String(sinAddr)}, expected an IPv4 address`);
  require(Number.isInteger(sinPort) &&
    sinPort >= 0 &&
    sinPort <= 0xffff, `${field}.sinPort is ${String(sinPort)}, expected 0 to 65535`);
}
