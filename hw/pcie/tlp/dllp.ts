/**
 * Data link layer packets (Ack, UpdateFC): what they cost. PCIe base specification 3.1, 3.4: 4 bytes of content, a 16-bit CRC, and 2 bytes
 * of framing (SDP and END symbols, or the SDP token): 8 bytes of the link.
 */
export const DLLP_LINK_BYTES = 8;
