/**
 * Resources that the blocks of the function share: time, its end of the link, configuration, configuration space and windows.
 * Created once, before the blocks. The table of wires (function-blocks.ts) lists the calls between blocks.
 */
import type { ClockDomain, LogicalProcess } from '../../../sim/index.ts';
import { Bars } from './bars.ts';
import { ConfigSpace, type LinkIdentity } from './config-space.ts';
import { FunctionCounters } from './function-counters.ts';
import type { FunctionConfig } from './function-parameters.ts';
import type { FunctionPort } from './function-port.ts';

export interface FunctionOptions {
  readonly process: LogicalProcess;
  /** The device's clock domain; the function adds two stages to it. */
  readonly domain: ClockDomain;
  readonly port: FunctionPort;
  readonly config: FunctionConfig;
  readonly link: LinkIdentity;
  /** Accounting class of INTx and error messages. */
  readonly messageTrafficClass: number;
  /** Offset in configuration space of the gateway into BAR0; undefined: the function has none. */
  readonly gatewayAddress?: number | undefined;
}

export interface FunctionCore extends FunctionOptions {
  readonly space: ConfigSpace;
  readonly bars: Bars;
  readonly counters: FunctionCounters;
}

export function makeCore(options: FunctionOptions): FunctionCore {
  const { config, link, gatewayAddress } = options;
  return {
    ...options,
    space: new ConfigSpace(config, link, gatewayAddress),
    bars: new Bars(config),
    counters: new FunctionCounters(),
  };
}
