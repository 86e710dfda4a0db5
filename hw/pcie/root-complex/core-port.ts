/** The root complex as one core sees it: the host passes it to its cores and their store buffers. */
import type { BusAddress } from '../../../base/index.ts';
import type { RootComplex } from './root-complex.ts';
import type { StoreSender } from './root-complex-core-queue.ts';
import type { AccessDone } from './root-complex-interfaces.ts';

export class CorePort {
  readonly #rootComplex: RootComplex;
  readonly #core: number;

  constructor(rootComplex: RootComplex, core: number) {
    this.#rootComplex = rootComplex;
    this.#core = core;
  }

  canStore(): boolean {
    return this.#rootComplex.canStore(this.#core);
  }

  /** See Block.connect. */
  connect({ stores }: { readonly stores: StoreSender }): void {
    this.#rootComplex.connectCore(this.#core, stores);
  }

  cpuStore(
    busAddress: BusAddress,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
  ): void {
    this.#rootComplex.cpuStore(this.#core, busAddress, source, sourceOffset, lengthBytes, trafficClass);
  }

  cpuLoad(busAddress: BusAddress, lengthBytes: number, done: AccessDone): void {
    this.#rootComplex.cpuLoad(this.#core, busAddress, lengthBytes, done);
  }

  cpuConfigRead(target: number, register: number, done: AccessDone): void {
    this.#rootComplex.configRead(this.#core, target, register, done);
  }

  cpuConfigWrite(
    target: number,
    register: number,
    value: number,
    done: AccessDone,
    lengthBytes?: number,
  ): void {
    this.#rootComplex.configWrite(this.#core, target, register, value, done, lengthBytes);
  }
}
