/** Translates the address of an access and checks its right: by the IOTLB, or by a walk; a refused access is recorded. */
import { entryReadable, iommuPageBytes } from '../../abi/index.ts';
import type { FaultLog } from './fault-log.ts';
import type { Iotlb } from './iotlb.ts';
import type { PageWalker } from './page-walker.ts';

const NOWHERE = -1;

export interface TranslationPorts {
  readonly iotlb: Iotlb;
  readonly walker: Pick<PageWalker, 'walk'>;
  readonly faultLog: Pick<FaultLog, 'record'>;
}

export class Translation {
  #ports!: TranslationPorts;

  connect(ports: TranslationPorts): void {
    this.#ports = ports;
  }

  /** A request has arrived: its entry, if any, is held from now on. @returns whether that needed a walk */
  prepare(address: number): boolean {
    const { iotlb, walker } = this.#ports;
    const page = Math.floor(address / iommuPageBytes);
    if (iotlb.find(page) >= 0) {
      iotlb.hits++;
      return false;
    }
    iotlb.misses++;
    walker.walk(page);
    return true;
  }

  /** Physical address of an access within one page, as the root complex has checked; -1 if it is refused. */
  translate(address: number, right: number): number {
    const { iotlb, walker, faultLog } = this.#ports;
    const page = Math.floor(address / iommuPageBytes);
    let place = iotlb.find(page);
    if (place < 0) place = walker.walk(page);
    if (place < 0) {
      faultLog.record(address, 'notPresent');
      return NOWHERE;
    }
    if ((iotlb.rightsAt(place) & right) === 0) {
      faultLog.record(address, right === entryReadable ? 'readNotAllowed' : 'writeNotAllowed');
      return NOWHERE;
    }
    return iotlb.frameAt(place) + (address % iommuPageBytes);
  }
}
