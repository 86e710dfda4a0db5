/**
 * Addresses as socket programs write them, and the local ends that they name.
 *
 *     AF_INET    167772162                     10.0.0.2, its first byte the highest; 0: any
 *     AF_INET6   '2001:db8::2', '::'           text of RFC 4291, 2.2; '::': any, also of IPv4, as Linux has it (IPV6_V6ONLY off)
 *                'fe80::1%eth0.7'              an address of one link only needs the interface (RFC 4007, 11.2)
 *                '::ffff:10.0.0.2'             an IPv4 address on such a socket (RFC 3493, 3.7)
 *
 * The interface without a tag is eth0, that of VLAN 7 is eth0.7. Their addresses differ, so a program selects a VLAN by its
 * address.
 */
import {
  type IpAddress,
  ipv6Of,
  type LocalEnd,
  type NetInterface,
  type NetworkStack,
  type Route,
  textOfIp,
} from '../stack/index.ts';
import { NetError } from './net-error.ts';
import type { Socket } from './socket.ts';

export type AddressFamily = 'AF_INET' | 'AF_INET6';

export interface SocketAddress {
  /** A number for a socket of AF_INET, text for one of AF_INET6. */
  readonly address: number | string;
  readonly port: number;
}

/** An address with its zone. */
interface Scoped {
  readonly address: IpAddress;
  readonly via: NetInterface | undefined;
}

const ipv4Max = 0xffff_ffff;
/** ::ffff:0:0/96 */
const mapped = ipv6Of('::ffff:0:0')!;
const mappedBits = 96;

/** @throws NetError EINVAL, EAFNOSUPPORT, ENODEV */
function scopedOf(stack: NetworkStack, family: AddressFamily, address: number | string): Scoped {
  const isRight = family === 'AF_INET' ? typeof address === 'number' : typeof address === 'string';
  if (!isRight)
    throw new NetError(
      'EAFNOSUPPORT',
      `address is ${address}, expected ${family === 'AF_INET' ? 'a number' : 'text'} for ${family}`,
    );
  if (typeof address === 'number') {
    if (Number.isInteger(address) && address >= 0 && address <= ipv4Max) return { address, via: undefined };
    throw new NetError('EINVAL', `address is ${address}, expected 0 to ${ipv4Max}`);
  }
  const [text = '', zone] = address.split('%', 2);
  const ip = ipv6Of(text);
  if (ip === undefined) throw new NetError('EINVAL', `address is ${address}, expected one of IPv6`);
  const via = stack.interfaces.find(({ name }) => name === zone);
  if (zone !== undefined && via === undefined)
    throw new NetError(
      'ENODEV',
      `zone is ${zone}, expected ${stack.interfaces.map(({ name }) => name).join(', ')}`,
    );
  if (ip.isLinkLocal && via === undefined)
    throw new NetError(
      'EINVAL',
      `address is ${address}, expected the interface of a link-local one behind %`,
    );
  if (ip.sharesPrefix(mapped, mappedBits))
    return { address: ip.bytes.subarray(12).reduce((number, byte) => number * 256 + byte, 0), via };
  return { address: ip, via };
}

/** Local address to which a socket is bound. @throws NetError EINVAL, EAFNOSUPPORT, ENODEV, EADDRNOTAVAIL */
export function localEndOf(stack: NetworkStack, family: AddressFamily, local: SocketAddress): LocalEnd {
  const { address, via } = scopedOf(stack, family, local.address);
  if (address === 0) return { address: 'ipv4', via };
  if (typeof address !== 'number' && address.isUnspecified) return { address: 'both', via };
  const own = stack.interfaces.find((one) => (via === undefined || one === via) && one.isOwn(address));
  if (own !== undefined) return { address, via: own };
  const [any, what] = family === 'AF_INET' ? ['0.0.0.0', 'an address'] : ['::', 'an address'];
  throw new NetError(
    'EADDRNOTAVAIL',
    `address is ${textOfIp(address)}, expected ${any} or ${what} of this host`,
  );
}

/** The route to the other end, undefined without one. @throws NetError EINVAL, EAFNOSUPPORT, ENODEV */
export function remoteEndOf(stack: NetworkStack, socket: Socket, remote: SocketAddress): Route | undefined {
  const { address, via } = scopedOf(stack, socket.family, remote.address);
  const { local } = socket;
  const source = typeof local.address === 'string' ? undefined : local.address;
  return stack.routeTo(address, via ?? local.via, source);
}

/** The local end of a socket. */
export function socketAddressOf(
  stack: NetworkStack,
  { family, connection, local }: Socket,
  port: number,
): SocketAddress {
  const bound = typeof local.address === 'string' ? undefined : local.address;
  const address = connection?.route.source ?? bound;
  const via = connection?.route.via ?? local.via;
  if (family === 'AF_INET')
    return { address: typeof address === 'number' ? address : stack.interfaces[0]!.address, port };
  if (address === undefined) return { address: '::', port };
  if (typeof address === 'number') return { address: `::ffff:${textOfIp(address)}`, port };
  return { address: address.isLinkLocal ? `${address}%${via!.name}` : `${address}`, port };
}
