import { describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../base/bytes.ts';
import { ArpOperation, arpOf, arpReply, arpRequest } from './arp.ts';

const own = { mac: fromHex('0002c9123456'), address: 0x0a00_0001 };
const peer = { mac: fromHex('0002c9654321'), address: 0x0a00_0002 };
/** Hardware type 1, protocol 0800, 6 and 4 bytes of address. */
const kind = '0001080006 04'.replace(' ', '');
const request = `ffffffffffff0002c91234560806${kind}00010002c91234560a0000010000000000000a000002`;
const reply = `0002c96543210002c91234560806${kind}00020002c91234560a0000010002c96543210a000002`;

describe('ARP', () => {
  it('RFC 826: sends requests to all stations with zeros for the wanted MAC, and answers to the requester', () => {
    expect(toHex(arpRequest(own, peer.address))).toBe(request);
    expect(toHex(arpReply(own, peer))).toBe(reply);
  });

  it('is parsed if the cable has padded it', () => {
    expect(arpOf(fromHex(request, 60))).toMatchObject({
      operation: ArpOperation.REQUEST,
      senderMac: own.mac,
      senderAddress: own.address,
      targetAddress: peer.address,
    });
  });

  it.each([
    ['is too short', request.slice(0, -2)],
    ['is of another hardware', request.replace(kind, '000608000604')],
    ['is of another protocol', request.replace(kind, '000186dd0604')],
    ['has longer MACs', request.replace(kind, '000108000804')],
    ['has longer addresses', request.replace(kind, '000108000610')],
    ['neither asks nor answers', request.replace(`${kind}0001`, `${kind}0003`)],
    ['RFC 1812, 3.3.2: gives a group for a station', reply.replace('00020002c9123456', '00020102c9123456')],
  ])('drops what %s', (_what, frame) => {
    expect(arpOf(fromHex(frame))).toBeUndefined();
  });
});
