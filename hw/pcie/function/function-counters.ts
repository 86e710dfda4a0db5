/** Requests received by the function, by result. */
export class FunctionCounters {
  memoryWrites = 0;
  memoryReads = 0;
  configReads = 0;
  configWrites = 0;
  messages = 0;
  unsupportedRequests = 0;
  completerAborts = 0;
  poisonedRequests = 0;
  malformedRequests = 0;
  resets = 0;
}
