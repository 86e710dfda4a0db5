/** The blocks of the data path, as those see them that act on several: what goes wrong, what comes and goes, what ends. */
import type { Acknowledgements } from './acknowledgements.ts';
import type { AsyncEvents } from './async-events.ts';
import type { CompletionWriter } from './completion-writer.ts';
import type { ContextCache } from './context-cache.ts';
import type { HcaCore } from './core.ts';
import type { Doorbells } from './doorbells.ts';
import type { Flusher } from './flusher.ts';
import type { Loopback } from './loopback.ts';
import type { OperationLedger } from './operations.ts';
import type { PageFaults } from './page-faults.ts';
import type { PayloadWriter } from './payload-writer.ts';
import type { ReceiveWqeFetch } from './receive-wqe-fetch.ts';
import type { Receiver } from './receiver.ts';
import type { Requester } from './requester.ts';
import type { ResponseEngine } from './response-engine.ts';
import type { RetryTimers } from './retry-timers.ts';
import type { SendRecords } from './send-records.ts';
import type { SendScheduler } from './send-scheduler.ts';
import type { Transmitter } from './transmitter.ts';
import type { WqeFetch } from './wqe-fetch.ts';
import type { WqeLines } from './wqe-lines.ts';

export interface DataPathParts {
  readonly core: HcaCore;
  readonly qpcCache: ContextCache;
  readonly cqcCache: ContextCache;
  readonly srqcCache: ContextCache;
  readonly lines: WqeLines;
  readonly records: SendRecords;
  readonly operations: OperationLedger;
  readonly doorbells: Doorbells;
  readonly scheduler: SendScheduler;
  readonly wqeFetch: WqeFetch;
  readonly requester: Requester;
  readonly transmitter: Transmitter;
  readonly loopback: Loopback;
  readonly receiver: Receiver;
  readonly responses: ResponseEngine;
  readonly receives: ReceiveWqeFetch;
  readonly acknowledgements: Acknowledgements;
  readonly timers: RetryTimers;
  readonly completions: CompletionWriter;
  readonly flusher: Flusher;
  readonly asyncEvents: AsyncEvents;
  readonly writer: PayloadWriter;
  readonly pageFaults: PageFaults;
}
