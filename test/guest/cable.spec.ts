import { testScenario } from './suite.ts';

await testScenario('cable', 'backports');
