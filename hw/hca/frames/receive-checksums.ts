/**
 * Computes the checksum fields of a received frame's completion while its bytes pass.
 *
 *     status    IPv4 or IPv6; IP is right; fragment, options; TCP or UDP
 *     checksum  ffff: TCP or UDP is right. With `complete` else the ones' complement sum of what follows the header of IP and of
 *               IPv4: addresses, protocol, length;  IPv6: addresses, length
 *
 * Linux undoes these sums: for IPv4 it subtracts the pseudo-header, for IPv6 it adds the six missing bytes (mlx4
 * en_rx.c: get_fixed_ipv4_csum, get_fixed_ipv6_csum). If the sum of a wrong TCP or UDP packet happens to be ffff, 0 is
 * reported instead, which is equal in ones' complement arithmetic. Padding and tags are left out of the sum; frames
 * with more than one customer tag are not examined (modes 1 and 2 of CONFIG_DEV; mode 3 allows several tags). Sources:
 * interface sheet 6.6, 3.19; Linux, as named.
 */
import { CqeIpStatus } from '../../../abi/index.ts';
import type { ReceiveChecksums } from '../port/index.ts';
import {
  FULL_SUM,
  hasWholeHeader,
  IPV4_HEADER_BYTES,
  IPV6_HEADER_BYTES,
  isFragment,
  isIpChecksumRight,
  isTcp,
  isTransportChecksumRight,
  type PacketPlaces,
  packetPlacesOf,
  sumWithAddresses,
  TAG_BYTES,
  TAG_PLACE,
  tagOf,
} from './frame-headers.ts';

const UNTAGGED_NETWORK_PLACE = TAG_PLACE + 2;
const NO_TAG = -1;

export class FrameChecksums {
  readonly #hasSums: boolean;
  /** Bits of CqeIpStatus, and the sum, of the frame examined last; 0 if it is not an IP packet. */
  ipStatus = 0;
  checksum = 0;

  constructor(form: ReceiveChecksums) {
    this.#hasSums = form === 'complete';
  }

  /** Examines the frame at `at`. */
  examine(bytes: Uint8Array, at: number, frameBytes: number): void {
    this.ipStatus = 0;
    this.checksum = 0;
    const places = packetPlacesOf(bytes, at, frameBytes);
    if (places === undefined || !hasPlainTag(bytes, at, places)) return;
    const hasTransport = hasWholeHeader(places);
    this.ipStatus = networkStatusOf(bytes, places) | (hasTransport ? transportStatusOf(places) : 0);
    if (hasTransport && isTransportChecksumRight(bytes, places)) this.checksum = FULL_SUM;
    else if (this.#hasSums) this.checksum = sumOf(bytes, places, hasTransport);
  }
}

/** True for a frame without a tag, or with one customer tag. */
function hasPlainTag(bytes: Uint8Array, at: number, { network }: PacketPlaces): boolean {
  const place = network - at;
  if (place === UNTAGGED_NETWORK_PLACE) return true;
  return place === UNTAGGED_NETWORK_PLACE + TAG_BYTES && tagOf(bytes, at, true) !== NO_TAG;
}

function networkStatusOf(bytes: Uint8Array, places: PacketPlaces): number {
  if (!places.isIpv4) return CqeIpStatus.IPV6 | CqeIpStatus.IP_OK;
  const { network } = places;
  return (
    CqeIpStatus.IPV4 |
    (isFragment(bytes, network) ? CqeIpStatus.IPV4_FRAGMENT : 0) |
    (headerBytesOf(bytes, network) > IPV4_HEADER_BYTES ? CqeIpStatus.IPV4_OPTIONS : 0) |
    (isIpChecksumRight(bytes, places) ? CqeIpStatus.IP_OK : 0)
  );
}

const transportStatusOf = (places: PacketPlaces): number =>
  isTcp(places) ? CqeIpStatus.TCP : CqeIpStatus.UDP;

const headerBytesOf = (bytes: Uint8Array, network: number): number => (bytes[network]! & 0xf) * 4;

function sumOf(bytes: Uint8Array, places: PacketPlaces, hasTransport: boolean): number {
  const { isIpv4, network, protocol, end } = places;
  const from = network + (isIpv4 ? headerBytesOf(bytes, network) : IPV6_HEADER_BYTES);
  const sum = sumWithAddresses(bytes, places, from, end - from + (isIpv4 ? protocol : 0));
  return hasTransport && sum === FULL_SUM ? 0 : sum;
}
