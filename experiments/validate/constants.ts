/** Figures that the model has without running: from the configuration, from the formats, and closed forms of both. */
import {
  controlSegment,
  datagramSegment,
  dataPointer,
  inlineHeader,
  remoteAddressSegment,
} from '../../abi/index.ts';
import { COMPLETION_DATA, framingOf, headerBytesOf, linkRateOf, MEMORY_READ } from '../../hw/pcie/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import type { Figures } from './points.ts';

const aboveFourGib = 2 ** 32;

export function constantFigures(config: MachineConfig): Figures {
  const { link, rootComplex } = config.pcie;
  const { cost, core } = config.host;
  const framingBytes = framingOf(link.generation).tlpBytes;
  const crossingsUs = (cost.systemCallEntry + cost.systemCallExit) / core.clockMHz;
  return {
    requestOverheadBytes: headerBytesOf(MEMORY_READ, aboveFourGib) + framingBytes,
    completionOverheadBytes: headerBytesOf(COMPLETION_DATA, aboveFourGib) + framingBytes,
    laneMegabytesPerSecond: (linkRateOf(link).gigabitsPerSecond * 125) / link.lanes,
    completionBytes: rootComplex.completionCombineBytes,
    connectedWqeHeaderBytes:
      controlSegment.sizeBytes + remoteAddressSegment.sizeBytes + inlineHeader.sizeBytes,
    datagramWqeHeaderBytes: controlSegment.sizeBytes + datagramSegment.sizeBytes + inlineHeader.sizeBytes,
    receiveWqeBytes: dataPointer.sizeBytes,
    twoCrossingsUs: crossingsUs,
    sixCrossingsUs: 3 * crossingsUs,
  };
}
