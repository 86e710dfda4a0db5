/**
 * ICRC and VCRC computed once more, by code that shares nothing with the device: one bit at a time, headers found from the bytes
 * alone. Source: IBTA vol 1, 7.8.1 and 7.8.2; annexes A16 and A17.
 */

/** A shift register: the low bit of a byte enters first, against the register's highest bit; sent complemented and reversed. */
function shiftRegister(bytes: Iterable<number>, polynomial: number, bits: number): number {
  const high = 2 ** (bits - 1);
  const size = 2 ** bits;
  let register = size - 1;
  for (const byte of bytes)
    for (let bit = 0; bit < 8; bit++) {
      const top = register >= high ? 1 : 0;
      register = (register * 2) % size;
      if (top !== (Math.floor(byte / 2 ** bit) & 1)) register = (register ^ polynomial) >>> 0;
    }
  let sent = 0;
  for (let bit = 0; bit < bits; bit++)
    if (Math.floor(register / 2 ** bit) % 2 === 0) sent += 2 ** (bits - 1 - bit);
  return sent;
}

/** The VCRC that a packet of an InfiniBand link, LRH to VCRC, must end with. */
export const ownVcrc = (packet: Uint8Array): number =>
  shiftRegister(packet.subarray(0, packet.length - 2), 0x100b, 16);

/** The ICRC that lies in a packet of an InfiniBand link must be this. */
export function ownIcrcOfLink(packet: Uint8Array): number {
  const covered = [...packet.subarray(0, packet.length - 6)];
  covered[0]! |= 0xf0;
  const hasGrh = (packet[1]! & 3) === 3;
  if (hasGrh) maskRoute(covered, 8);
  covered[(hasGrh ? 48 : 8) + 4] = 0xff;
  return shiftRegister(covered, 0x04c1_1db7, 32);
}

/** The ICRC that a frame of RoCE must end with; frames without a VLAN tag, IPv4 without options. */
export function ownIcrcOfFrame(frame: Uint8Array): number {
  const type = frame[12]! * 256 + frame[13]!;
  const covered = [...frame.subarray(14, frame.length - 4)];
  let bth = 40;
  if (type === 0x0800) {
    for (const place of [1, 8, 10, 11, 26, 27]) covered[place] = 0xff;
    bth = 28;
  } else {
    maskRoute(covered, 0);
    if (type === 0x86dd) {
      covered[46] = 0xff;
      covered[47] = 0xff;
      bth = 48;
    }
  }
  covered[bth + 4] = 0xff;
  return shiftRegister([...new Array<number>(8).fill(0xff), ...covered], 0x04c1_1db7, 32);
}

/** Traffic class, flow label and hop limit of a GRH or of IPv6. */
function maskRoute(bytes: number[], at: number): void {
  bytes[at]! |= 0x0f;
  for (const place of [1, 2, 3, 7]) bytes[at + place] = 0xff;
}
