/**
 * Shortens properties for `npm run test:quick`: a property draws samples for this long, the rest is for `npm test`. A
 * spec's own time limit takes precedence; drawn samples fail as usual.
 */
import fc from 'fast-check';

const drawingMs = 250;

fc.configureGlobal({ ...fc.readConfigureGlobal(), interruptAfterTimeLimit: drawingMs });
