/** Addresses of packets that were captured from hardware, and of the specification's sample packet: fields are read off their bytes. */
import { describe, expect, it } from 'vitest';
import { PACKET_BYTES_SHIFT, WORD_PACKET_FLAGS } from './packet.ts';
import { receivedIdentity } from './packet-identity.ts';
import { PACKET_RIGHT, RecordBytes } from './record-bytes.ts';

const RECORD = 128;

function identityOf(hex: string) {
  const packet = Uint8Array.from(Buffer.from(hex, 'hex'));
  const buffer = new ArrayBuffer(4096);
  const [bytes, words] = [new Uint8Array(buffer), new Int32Array(buffer)];
  words[(RECORD >> 2) + WORD_PACKET_FLAGS] =
    ((packet[0]! >> 4) << 12) | (packet.length << PACKET_BYTES_SHIFT);
  const codec = new RecordBytes({ bytes, words, floats: new Float64Array(buffer) });
  expect(codec.unpack(packet, 0, packet.length, RECORD)).toBe(PACKET_RIGHT);
  return receivedIdentity({ rxBytes: bytes, rxWords: words }, RECORD);
}

describe('the identity of a packet', () => {
  it('IBTA 7.7, 8.3, 9.2, 9.3.2: of a datagram with a GRH has both GIDs and the source QP of the DETH', () => {
    // Frame 5 of ib-hardware-sample.pcap: an ARP request over InfiniBand.
    const arp =
      '0003c000002100046000000000541b00fe800000000000000002c9020024f636ff12401bffff000000000000ffffffff6440ffff00ffffff000020af' +
      '00000b1b0000040508060000002008001404000180000405fe800000000000000002c9020024f6360a00012200000000000000000000000000000000' +
      '000000000a00003abd6bd6a88883';
    const { gids, ...rest } = identityOf(arp);
    expect(rest).toEqual({
      ...{ sourceLid: 4, destinationLid: 0xc000, pkey: 0xffff, serviceLevel: 0 },
      ...{ destinationQpn: 0xffffff, sourceQpn: 0x405 },
    });
    expect(Buffer.from(gids!.source).toString('hex')).toBe('fe800000000000000002c9020024f636');
    expect(Buffer.from(gids!.destination).toString('hex')).toBe('ff12401bffff000000000000ffffffff');
  });

  it('IBTA 7.7, 9.2: of a WRITE of a connection has neither', () => {
    const write =
      '7012375c000e17d20a2024870087b1b3000dec2a01710a1c015d400238f27a050000000ebb884d85fd5cfba4728bc0690ed400009625b75a45fa';
    expect(identityOf(write)).toEqual({
      ...{ sourceLid: 0x17d2, destinationLid: 0x375c, pkey: 0x2487, serviceLevel: 1 },
      ...{ destinationQpn: 0x87b1b3, sourceQpn: undefined, gids: undefined },
    });
  });
});
