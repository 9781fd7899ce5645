/** The entry point of undici costs 13 MB more than its pool alone. */
declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici';
  export default Pool;
}
