/**
 * Descriptors of the rings, 16 bytes each, little-endian: Intel's legacy formats. Source: 8254x manual, 3.2.3 and 3.3.3.
 *
 * A frame may be spread over several descriptors (scatter and gather); the last has EOP. The device writes back the
 * 8 bytes from 8 on, of every receive descriptor it uses, and of transmit descriptors with RS.
 */
import { bits8, layout, u8, u16, u64 } from '../../base/index.ts';

export const nicDescriptorBytes = 16;
/** The part of a descriptor that is written back. */
export const nicWriteBack = { offset: 8, lengthBytes: 8 } as const;

export const nicTransmitDescriptor = layout(
  'NIC transmit descriptor',
  { sizeBytes: nicDescriptorBytes, byteOrder: 'little', source: '8254x manual, 3.3.3' },
  {
    bufferAddress: u64(0x0, 'bus address of the bytes, any alignment'),
    length: u16(0x8, 'bytes at that address; 0 with EOP and no bytes before it is PROGERR'),
    checksumOffset: u8(0xa, 'CSO: where in the frame the checksum goes'),
    endOfPacket: bits8(0xb, 0, 0, 'EOP'),
    insertChecksum: bits8(
      0xb,
      2,
      2,
      'IC, looked at in the last descriptor: insert the checksum over CSS … end',
    ),
    reportStatus: bits8(0xb, 3, 3, 'RS: write back, and set TXDW, when the frame has left host memory'),
    insertTag: bits8(0xb, 6, 6, 'VLE, looked at in the last descriptor: with CTRL.VME, insert the tag'),
    done: bits8(0xc, 0, 0, 'DD, written back: the buffer is software’s again'),
    error: bits8(0xc, 3, 3, 'TU in the 8254x; own: the frame was not sent, its bytes could not be read'),
    checksumStart: u8(0xd, 'CSS: first byte of the frame that the checksum covers'),
    special: u16(0xe, 'of the tag to be inserted: priority 15:13, drop eligible 12, VLAN 11:0'),
  },
);

export const nicReceiveDescriptor = layout(
  'NIC receive descriptor',
  { sizeBytes: nicDescriptorBytes, byteOrder: 'little', source: '8254x manual, 3.2.3' },
  {
    bufferAddress: u64(0x0, 'bus address of a buffer of RXBUF bytes'),
    length: u16(0x8, 'bytes put into this buffer, without FCS'),
    checksum: u16(
      0xa,
      'packet checksum: one’s complement sum over RXCSUM.PCSS … end, without a tag that was taken out, not inverted; in the last one',
    ),
    done: bits8(0xc, 0, 0, 'DD, written last'),
    endOfPacket: bits8(0xc, 1, 1, 'EOP: the frame ends here'),
    isTagged: bits8(0xc, 3, 3, 'VP: the frame had a tag'),
    error: u8(0xd, 'reserved: frames with errors are counted and dropped'),
    special: u16(
      0xe,
      'of the tag that was taken out: priority 15:13, drop eligible 12, VLAN 11:0; else zero',
    ),
  },
);
