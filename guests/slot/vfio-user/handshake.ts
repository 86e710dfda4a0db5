/**
 * VERSION: the client's proposal, and the server's answer.
 *
 * The reply names the same major version, a minor version that both know, and our limits in JSON text. QEMU accepts no reply
 * longer than its own proposal, so the text is short and contains only proposed capabilities without a default in the
 * specification.
 */
import { constants } from 'node:os';
import type { VfioUserConfig } from './parameters.ts';
import { VERSION_MAJOR, VERSION_MINOR_MAX, version } from './protocol.ts';
import { PAYLOAD_OFFSET, type Reply } from './reply.ts';

const { EINVAL, EPROTONOSUPPORT } = constants.errno;
/** A proposal has a few hundred bytes; longer data are not a proposal. */
const versionBytesMax = 16_384;
const textDecoder = new TextDecoder('utf-8', { fatal: true });
const textEncoder = new TextEncoder();

/** Answers the payload of a VERSION command: bytes of the reply's payload, or minus an errno. */
export function answerVersion(payload: Uint8Array, reply: Reply, config: VfioUserConfig): number {
  if (payload.length < version.sizeBytes || payload.length > versionBytesMax) return -EINVAL;
  const { major, minor } = version.decode(payload);
  if (major !== VERSION_MAJOR) return -EPROTONOSUPPORT;
  const proposed = capabilitiesOf(payload.subarray(version.sizeBytes));
  if (proposed === undefined) return -EINVAL;
  version.encodeInto({ major, minor: Math.min(minor, VERSION_MINOR_MAX) }, reply.bytes, PAYLOAD_OFFSET);
  const capabilities = {
    max_msg_fds: config.maxMessageDescriptors,
    max_data_xfer_size: config.maxDataTransferBytes,
    max_dma_maps: config.dmaMapCountMax,
    ...(proposed['write_multiple'] === true && { write_multiple: true }),
  };
  const text = textEncoder.encode(`${JSON.stringify({ capabilities })}\0`);
  reply.bytes.set(text, PAYLOAD_OFFSET + version.sizeBytes);
  return version.sizeBytes + text.length;
}

/** The object `capabilities` of the version data; empty if absent, undefined if the data is not such text. */
function capabilitiesOf(data: Uint8Array): Record<string, unknown> | undefined {
  if (data.length === 0) return {};
  if (data[data.length - 1] !== 0) return undefined;
  try {
    const parsed: unknown = JSON.parse(textDecoder.decode(data.subarray(0, -1)));
    if (!isRecord(parsed)) return undefined;
    const capabilities = parsed['capabilities'] ?? {};
    return isRecord(capabilities) ? capabilities : undefined;
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
