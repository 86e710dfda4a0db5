/** Addresses of IP as programs of the connection manager write them (address-text.ts): a scope after % is ignored, since a host has one link. */

import { bytesOfAddress, textOfGid } from '../address-text.ts';
import { require } from '../kernel-error.ts';
import type { SocketAddress } from '../rdma-cm.ts';

/** Any address of this host: IPv4 only, and either kind. */
export const anyIpv4 = '0.0.0.0';
export const anyIpv6 = '::';

/** A checked address, as a GID. */
export const gidOfAddress = (text: string): Uint8Array => bytesOfAddress(text)!;

/** Whether both are IPv4, or both IPv6. */
export const isIpv4Address = (text: string): boolean => !text.includes(':');

/** @throws KernelError EINVAL unless it is an IPv4 or IPv6 address with a port */
export function requireAddress(field: string, { sinAddr, sinPort }: SocketAddress): void {
  const bytes = typeof sinAddr === 'string' ? bytesOfAddress(sinAddr) : undefined;
  require(bytes !== undefined, `${field}.sinAddr is ${String(sinAddr)}, expected an IPv4 or IPv6 address`);
  require(Number.isInteger(sinPort) &&
    sinPort >= 0 &&
    sinPort <= 0xffff, `${field}.sinPort is ${String(sinPort)}, expected 0 to 65535`);
}

/** The same address in canonical form. */
export const plainAddress = ({ sinAddr, sinPort }: SocketAddress): SocketAddress => ({
  sinAddr: textOfGid(gidOfAddress(sinAddr)),
  sinPort,
});
